#!/usr/bin/python3 -I
"""A small store of keys, and the program that speaks for its clients: `keystore serve` and `keystore client`.

It stands for a database that has no protocol of its own here. The server keeps everything in memory and each transaction that
changes something in a log, a line each, which it syncs before it answers; with `--no-sync` it does not, and still answers. The
client program speaks the lines of docs/guide/client-programs.md to Holdfast, and lines of its own to the server.
"""

import collections
import json
import os
import queue
import socket
import socketserver
import sys
import threading

LIMITS = (-(2**63), 2**63 - 1)
READS = ("read", "scan")


class Refused(Exception):
    pass


def step(held, operation):
    """Carries one operation out; what it found."""
    do, key = operation["do"], operation.get("key")
    if do == "read":
        return {"value": held.get(key)}
    if do == "scan":
        after = (operation["after"] or "").encode()
        keys = [key for key in held if key.startswith(operation["prefix"]) and key.encode() > after]
        keys = sorted(keys, key=str.encode)[: operation["limit"]]
        return {"entries": [[key, held[key]] for key in keys]}
    there = held.get(key)
    if do == "write":
        held[key] = operation["value"]
    elif do == "insert":
        if there is not None:
            raise Refused("something is there")
        held[key] = operation["value"]
    elif do == "compare-and-set":
        if there != operation["expected"]:
            raise Refused("another value is there")
        held[key] = operation["new"]
    elif do == "append":
        if isinstance(there, (int, str)):
            raise Refused("no list is there")
        held[key] = (there or []) + [operation["element"]]
    elif do == "add":
        if isinstance(there, (list, str)):
            raise Refused("no number is there")
        total, floor = (there or 0) + operation["amount"], operation["floor"]
        if not LIMITS[0] <= total <= LIMITS[1] or (floor is not None and total < floor):
            raise Refused("the sum is out of bounds")
        held[key] = total
    else:
        raise ValueError(do)
    return "done"


def transact(held, operations):
    """What the operations answer; all of them are carried out on what is held, or none."""
    view, found = collections.ChainMap({}, held), []
    for number, operation in enumerate(operations):
        try:
            found.append(step(view, operation))
        except Refused as error:
            return {"refused": {"step": number, "reason": str(error)}}
    held.update(view.maps[0])
    return {"ok": {"found": found}}


def only_reads(operations):
    return all(operation["do"] in READS for operation in operations)


class Store:
    def __init__(self, path, syncs):
        self.syncs, self.lock, self.held = syncs, threading.Lock(), {}
        whole = self.replay(path)
        self.log = open(path, "ab", buffering=0)
        # A line that the power took in the middle was answered to nobody.
        self.log.truncate(whole)
        self.sync(self.log.fileno())
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        self.sync(folder)
        os.close(folder)

    def replay(self, path):
        """Does again what the log has; the length of its whole lines."""
        whole = 0
        if not os.path.exists(path):
            return whole
        with open(path, "rb") as log:
            for line in log:
                try:
                    operations = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    operations = None
                if operations is None:
                    break
                transact(self.held, operations)
                whole += len(line)
        return whole

    def sync(self, descriptor):
        if self.syncs:
            os.fsync(descriptor)

    def answer(self, operations):
        with self.lock:
            answer = transact(self.held, operations)
            if "ok" in answer and not only_reads(operations):
                self.log.write(json.dumps(operations).encode() + b"\n")
                self.sync(self.log.fileno())
            return answer


class Conversation(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        try:
            for line in self.rfile:
                answer = self.server.store.answer(json.loads(line))
                self.wfile.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


def serve(arguments):
    flags = dict(argument.partition("=")[::2] for argument in arguments)
    unknown = flags.keys() - {"--log", "--listen", "--no-sync"}
    if unknown:
        sys.exit("keystore: unknown flags: %s" % ", ".join(sorted(unknown)))
    address, _, port = flags["--listen"].rpartition(":")
    with Server((address, int(port)), Conversation) as server:
        server.store = Store(flags["--log"], "--no-sync" not in flags)
        server.serve_forever()


SAYING = threading.Lock()


def say(ask, answer):
    with SAYING:
        print(json.dumps({"ask": ask, **answer}), flush=True)


def wrong(error):
    kind = "timeout" if isinstance(error, TimeoutError) else "connection"
    return {"class": kind, "code": None, "text": str(error) or type(error).__name__}


class Session:
    """A connection to the server, with a thread of its own: one that is busy keeps no other from its answer."""

    def __init__(self):
        self.asked, self.connection, self.lines = queue.Queue(), None, None
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            message = self.asked.get()
            if message is None:
                return
            if "open" in message:
                say(message["ask"], self.open(message["open"]))
            else:
                say(message["ask"], self.transact(message["transact"]))

    def open(self, opened):
        try:
            place = (opened["host"], opened["port"])
            self.connection = socket.create_connection(place, opened["timeout_ms"] / 1000)
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.lines = self.connection.makefile("rb")
        except OSError as error:
            return {"failed": wrong(error)}
        return {"ok": {}}

    def transact(self, asked):
        operations = asked["operations"]
        if self.lines is None:
            return {"failed": {"class": "connection", "code": None, "text": "there is no connection"}}
        try:
            self.connection.settimeout(asked["timeout_ms"] / 1000)
            self.connection.sendall(json.dumps(operations).encode() + b"\n")
            line = self.lines.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the server ended")
            return json.loads(line)
        except OSError as error:
            self.lines = None
            # It was sent, and nobody knows what became of it.
            return {"failed" if only_reads(operations) else "unknown": wrong(error)}

    def close(self):
        self.asked.put(None)
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass


def client():
    sessions = {}
    for line in sys.stdin:
        message = json.loads(line)
        number = message.get("session")
        if "hello" in message:
            say(message["ask"], {"ok": {"protocol": 1, "speaks": "keys", "rewrites_lists": False}})
        elif "close" in message:
            if number in sessions:
                sessions.pop(number).close()
        else:
            if number not in sessions:
                sessions[number] = Session()
            sessions[number].asked.put(message)


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "--version":
        print("keystore 1.2.0")
    elif what == "serve":
        serve(arguments)
    elif what == "client":
        client()
    else:
        sys.exit("keystore: serve, client or --version")


main()
