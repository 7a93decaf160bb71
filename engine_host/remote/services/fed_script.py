"""Runs a program of ours that comes through standard input, on this machine: `python -I -S fed_script.py`.

Standard library only. It is what the words of `Interpreter.PYTHON` do on another machine.
"""

import sys

if __name__ == "__main__":
    exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
