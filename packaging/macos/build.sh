#!/usr/bin/env bash
# The program for macOS as .app in a .dmg: packaging/macos/build.sh, on macOS with Python 3.11 to 3.13.
#
# NEVER RUN by us yet, and the program itself has not been tried on macOS. SNDR_SIGN names a signing identity, by which
# PyInstaller signs each library and program (frozen/sndr.spec), and SNDR_NOTARY a profile of notarytool; without them
# the disk image is for this very machine.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly app="build/frozen/SNDR Control Center.app"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' engine_host/__init__.py)
image=dist/sndr-control-center-$version-macos-$(uname -m).dmg

packaging/setup.sh run
packaging/package.sh
.venv/bin/python packaging/frozen/icons.py --icns packaging/macos/sndr.icns
.venv/bin/python packaging/frozen/freeze.py dist/sndr_control_center-*.whl
codesign --verify --deep --strict "$app"
rm -rf build/frozen/dmg "$image"
mkdir -p build/frozen/dmg
cp -R "$app" build/frozen/dmg/
ln -s /Applications build/frozen/dmg/Applications
hdiutil create -volname "SNDR Control Center" -srcfolder build/frozen/dmg -format UDZO "$image"
if [ -n "${SNDR_SIGN:-}" ]; then
    codesign --timestamp --sign "$SNDR_SIGN" "$image"
fi
if [ -n "${SNDR_NOTARY:-}" ]; then
    xcrun notarytool submit "$image" --keychain-profile "$SNDR_NOTARY" --wait
    xcrun stapler staple "$image"
fi
