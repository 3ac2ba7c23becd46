"""A web server of files, for tests of downloads; its faults can be set."""

import http.server
import socket
import threading

BODY = bytes(range(256)) * 4000


class Server(http.server.ThreadingHTTPServer):
    """Files by path; `drop` cuts that many connections short; `ranges` False ignores range requests; `fail` is too busy for
    that many, and says in how many seconds (`wait`) it is not."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.drop, self.ranges, self.requests, self.fail, self.wait = {"/file.bin": BODY}, 0, True, [], 0, None
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        body = server.files.get(self.path)
        if body is None or server.fail:
            server.fail = max(server.fail - 1, 0)
            self.send_response(503 if body is not None else 404)
            if server.wait:
                self.send_header("Retry-After", server.wait)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        kind = "text/html" if self.path.endswith("/") else "application/octet-stream"
        start = 0
        if server.ranges and self.headers.get("Range"):
            start = int(self.headers["Range"][len("bytes=") : -1])
            if start >= len(body):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if server.drop:
            server.drop -= 1
            self.wfile.write(body[start : start + (len(body) - start) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(body[start:])

    def log_message(self, *arguments):
        pass
