"""llama.cpp's own `/completion` and `/infill`, on engines of the other kind too.

Source: tools/server/README.md of llama.cpp.
"""
