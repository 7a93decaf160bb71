"""A FAKE engine for the manager's tests: HTTP on a Unix socket, with a child, and ends as it is told.

Run as `python -I -S fake_engine.py SOCKET MODE`; standard library only. `FakeAdapter` is its other half.
"""

import json
import os
import signal
import socketserver
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        if self.path == "/crash":
            print("fatal: the fake engine was told to crash", flush=True)
            os._exit(9)
        if self.path == "/verify":
            if MODE == "slow":
                time.sleep(300)
            if MODE == "crash-verify":
                print("fatal: crashed at its first token", flush=True)
                os._exit(7)
        body = json.dumps({"generated": int(time.monotonic() * 1000), "pid": os.getpid()}).encode()
        self.send_response(500 if self.path == "/verify" and MODE == "mute" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


if __name__ == "__main__":
    SOCKET, MODE = sys.argv[1:3]
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Engines have workers; this one ignores a polite end too.
    subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; exec sleep 300"])
    print("stage Load weights", flush=True)
    if MODE == "crash-start":
        print("fatal: no memory for the fake weights", flush=True)
        sys.exit(3)
    if MODE == "never":
        time.sleep(300)
    print("stage Serve", flush=True)
    _Server(SOCKET, _Handler).serve_forever()
