"""A receiver for the tool order-cancel. SECRET=whsec_... python3 receiver.py 127.0.0.1:9090"""

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
if len(KEY) < 24:
    sys.exit("set SECRET to the tool's signing_secret")
cancelled = {}  # answers by operation, whose id is signed: a repeated request gets the same answer


def signed(headers, body):
    """Report whether the gateway signed the request within the last five minutes."""
    at = headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        return False
    text = f"{headers.get('webhook-id', '')}.{at}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(want, one) for one in headers.get("webhook-signature", "").split())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        order = re.fullmatch(r"/orders/([0-9]+)/cancel", self.path)
        if not signed(self.headers, body):
            return self.answer(401, {"message": "the signature is wrong"})
        if not order:
            return self.answer(404, {"message": "there is no such order"})
        key = self.headers.get("webhook-id", "")
        if key not in cancelled:
            cancelled[key] = {"order": {"number": order[1], "status": "cancelled", "reason": json.loads(body).get("reason")}}
        self.answer(200, cancelled[key])

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


host, port = sys.argv[1].split(":")
HTTPServer((host, int(port)), Receiver).serve_forever()
