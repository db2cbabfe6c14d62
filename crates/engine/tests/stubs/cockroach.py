#!/usr/bin/python3 -I
"""A stand-in for the program `cockroach` of CockroachDB 20.1, as strict about its command line as that is.

It keeps engines/cockroachdb.yaml honest where the database itself cannot be had: flags, ports, the cluster that waits for
`cockroach init`, SQL over PostgreSQL's protocol with retry errors (40001), ranges and their zones, and what its SQL lacks.
Sources: the documentation of 20.1, "cockroach start", "cockroach init", "Client connection parameters", "Transaction retry
errors". It is no database: the node that was initialized holds all data, in SQLite, and the others hand sessions on to it.
"""

import os
import re
import socket
import sqlite3
import struct
import sys
import threading
import time

VERSION = "v20.1.17"
START_FLAGS = {
    "attrs", "cache", "external-io-dir", "listening-url-file", "locality", "max-disk-temp-storage", "max-offset",
    "max-sql-memory", "pid-file", "store", "temp-dir", "advertise-addr", "listen-addr", "http-addr",
    "locality-advertise-addr", "join", "certs-dir", "insecure", "logtostderr", "log-dir",
}
INIT_FLAGS = {"host", "insecure", "certs-dir", "url", "user"}
# A statement that commits by itself is told to try again, so often.
RETRY_EVERY = 25
# What PostgreSQL has and 20.1 has not.
UNKNOWN_SQL = re.compile(r"\b(vacuum|declare|fetch|freeze|fillfactor|enable_\w+|set\s+local|pg_is_in_recovery)\b", re.I)
RETRY = ("40001", "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError")


def fail(words):
    sys.stderr.write("ERROR: %s\n" % words)
    sys.exit(1)


def flags(command, arguments, known):
    given = {}
    for argument in arguments:
        name, has_value, value = argument.lstrip("-").partition("=")
        if not argument.startswith("--"):
            fail('unknown command "%s" for "cockroach %s"' % (argument, command))
        if name not in known:
            fail("unknown flag: --%s" % name)
        if not has_value and name != "insecure":
            fail("flag needs an argument: --%s" % name)
        given[name] = value or "true"
    if given.get("insecure") != "true" and "certs-dir" not in given:
        fail("problem with CA certificate: not found")
    return given


def address(flag, text):
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit():
        fail('invalid argument "%s" for "--%s" flag' % (text, flag))
    return host.strip("[]"), int(port)


def size(flag, text):
    if not re.fullmatch(r"\.?\d+(\.\d+)?(%|[kMGT]?i?B)?", text):
        fail('invalid argument "%s" for "--%s" flag' % (text, flag))


def ask(peer, words):
    """What a node answers to a word between nodes; nothing where it is not there."""
    try:
        with socket.create_connection(peer, 2) as line:
            line.sendall(("RPC %s\n" % words).encode())
            return line.makefile().readline().strip()
    except OSError:
        return None


class Node:
    def __init__(self, given):
        for needed in ("store", "listen-addr", "join"):
            if needed not in given:
                fail("no --%s flags provided to 'cockroach start'" % needed)
        store = given["store"].split(",")
        path = next((field[5:] for field in store if field.startswith("path=")), store[0])
        if not path.startswith("/"):
            fail('invalid argument "%s" for "--store" flag' % given["store"])
        for flag in ("cache", "max-sql-memory"):
            size(flag, given.get(flag, "128MiB"))
        tiers = given.get("locality", "region=here").split(",")
        if not all(re.fullmatch(r"[^=]+=[^=]+", tier) for tier in tiers):
            fail('invalid argument "%s" for "--locality" flag' % given["locality"])
        self.listens = address("listen-addr", given["listen-addr"])
        self.address = address("advertise-addr", given.get("advertise-addr", given["listen-addr"]))
        self.http = address("http-addr", given.get("http-addr", "%s:8080" % self.listens[0]))
        self.peers = [address("join", peer) for peer in given["join"].split(",")]
        self.store = path
        os.makedirs(path, exist_ok=True)
        self.database = os.path.join(path, "rows")
        # The address of the node with the rows, once there is a cluster.
        self.holder = self.address if os.path.exists(self.database) else None
        self.replicas = 0
        # Copies that a zone was told to have, where it was.
        self.zones = {}
        self.statements = 0
        self.lock = threading.Lock()
        # Whoever writes: one transaction after the other, in the order in which they come.
        self.turn = threading.Lock()

    def run(self):
        threading.Thread(target=self.serve_http, daemon=True).start()
        threading.Thread(target=self.look_around, daemon=True).start()
        listener = socket.create_server(self.listens)
        print("CockroachDB node starting at %s" % time.strftime("%F %T"), flush=True)
        while True:
            line, _ = listener.accept()
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(line,), daemon=True).start()

    def look_around(self):
        """Joins the cluster that a peer knows, and counts who is there."""
        while True:
            answers = [self.told(peer) for peer in self.peers]
            self.replicas = sum(answer is not None for answer in answers)
            time.sleep(0.2)

    def told(self, peer):
        answer = "here" if peer == self.address else ask(peer, "cluster")
        if self.holder is None and answer and answer.startswith("holder "):
            self.holder = address("join", answer[7:])
        return answer

    def serve_http(self):
        listener = socket.create_server(self.http)
        while True:
            line, _ = listener.accept()
            with line:
                is_ready = self.holder is not None or b"ready=1" not in line.recv(4096)
                status = "200 OK" if is_ready else "503 Service Unavailable"
                line.sendall(("HTTP/1.0 %s\r\nContent-Length: 3\r\n\r\n{}\n" % status).encode())

    def serve(self, line):
        try:
            with line:
                if line.recv(4, socket.MSG_PEEK | socket.MSG_WAITALL) == b"RPC ":
                    self.serve_peer(line)
                else:
                    self.serve_client(line)
        except (OSError, EOFError):
            pass

    def serve_peer(self, line):
        words = b""
        while not words.endswith(b"\n"):
            words += line.recv(1)
        if words == b"RPC init\n":
            with self.lock:
                is_new = self.holder is None
                if is_new:
                    rows = sqlite3.connect(self.database)
                    rows.execute("PRAGMA journal_mode = WAL")
                    rows.close()
                    self.holder = self.address
            line.sendall(b"initialized\n" if is_new else b"initialized before\n")
        elif words == b"RPC session\n":
            self.serve_session(line)
        else:
            line.sendall(("holder %s:%d\n" % self.holder if self.holder else "none\n").encode())

    def serve_client(self, line):
        # Sessions wait until there is a cluster.
        while self.holder is None:
            time.sleep(0.05)
        if self.holder == self.address:
            self.serve_session(line)
            return
        with socket.create_connection(self.holder, 5) as other:
            other.settimeout(None)
            other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            other.sendall(b"RPC session\n")
            threading.Thread(target=hand_on, args=(other, line), daemon=True).start()
            hand_on(line, other)

    def serve_session(self, line):
        rows = sqlite3.connect(self.database, timeout=5, isolation_level=None, check_same_thread=False)
        rows.execute("PRAGMA synchronous = NORMAL")
        session = Session(self, line, rows)
        try:
            session.serve()
        finally:
            session.leave_turn()
            rows.close()

    def wants_a_retry(self):
        with self.lock:
            self.statements += 1
            return self.statements % RETRY_EVERY == 0


def hand_on(source, sink):
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Refused(Exception):
    pass


def in_sqlite(sql):
    """A statement of CockroachDB as SQLite has it."""
    sql = re.sub(r"\$(\d+)(::bigint::text)?", lambda m: "CAST(?%s AS TEXT)" % m[1] if m[2] else "?" + m[1], sql)
    sql = re.sub(r"(?i)\bnow\(\)", "CURRENT_TIMESTAMP", sql)
    sql = re.sub(r"(?i)current_setting\('transaction_read_only'\)", "'off'", sql)
    return re.sub(r"(?i)^\s*(begin|start)\b.*", lambda m: "BEGIN" if "READ ONLY" in m[0].upper() else "BEGIN IMMEDIATE", sql)


class Session:
    """One client, in PostgreSQL's protocol."""

    def __init__(self, node, line, rows):
        self.node, self.line, self.rows = node, line, rows
        self.input = line.makefile("rb")
        self.prepared, self.bound = {}, None
        self.status = "I"
        self.has_turn = False
        self.skips = False
        # The statement that lines of a COPY are for, and those lines.
        self.copying, self.lines = None, b""

    def take_turn(self):
        if not self.has_turn and not self.node.turn.acquire(timeout=5):
            self.refuse(*RETRY)
        self.has_turn = True
        # Who says nothing for so long in a transaction is gone: others wait for it.
        self.line.settimeout(1)

    def leave_turn(self):
        if self.has_turn:
            self.node.turn.release()
            self.line.settimeout(None)
        self.has_turn = False

    def exactly(self, count):
        data = self.input.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def send(self, tag, body=b""):
        self.line.sendall(tag + struct.pack("!i", len(body) + 4) + body)

    def ready(self):
        self.send(b"Z", self.status.encode())

    def serve(self):
        length, protocol = struct.unpack("!ii", self.exactly(8))
        if protocol == 80877103:  # a question for encryption
            self.line.sendall(b"N")
            length, protocol = struct.unpack("!ii", self.exactly(8))
        parts = self.exactly(length - 8).split(b"\0")
        told = dict(zip(parts[::2], parts[1::2]))
        self.send(b"R", struct.pack("!i", 0))
        self.send(b"S", b"server_version\x009.5.0\0")
        self.send(b"S", b"crdb_version\0CockroachDB CCL %s\0" % VERSION.encode())
        if told.get(b"user") != b"root":
            self.error("28000", "password authentication failed")
            return
        self.ready()
        while True:
            tag, length = struct.unpack("!ci", self.exactly(5))
            body = self.exactly(length - 4)
            if tag == b"X":
                return
            self.message(tag, body)

    def message(self, tag, body):
        if tag == b"S":
            self.skips = False
            self.ready()
        elif tag == b"Q":
            try:
                for sql in filter(str.strip, body[:-1].decode().split(";")):
                    self.carry_out(sql, (), True)
            except Refused:
                pass
            if self.copying is None:
                self.ready()
        elif tag in (b"d", b"c", b"f"):
            self.copy(tag, body)
        elif not self.skips:
            try:
                {b"P": self.parse, b"B": self.bind, b"E": self.execute}[tag](body)
            except Refused:
                self.skips = True

    def copy(self, tag, body):
        if tag == b"d":
            self.lines += body
            return
        rows = [tuple(None if cell == "\\N" else cell for cell in line.split("\t")) for line in self.lines.decode().splitlines()]
        self.take_turn()
        self.rows.execute("BEGIN IMMEDIATE")
        self.rows.executemany(self.copying, rows)
        self.rows.execute("COMMIT")
        self.leave_turn()
        self.copying, self.lines = None, b""
        self.answer(None, "COPY %d" % len(rows), False)
        self.ready()

    def parse(self, body):
        name, sql = body.split(b"\0")[:2]
        self.refuse_unknown(sql.decode())
        self.prepared[name] = sql.decode()
        self.send(b"1")

    def bind(self, body):
        _, name, rest = body.split(b"\0", 2)
        formats = struct.unpack("!h", rest[:2])[0]
        rest = rest[2 + 2 * formats:]
        count, rest = struct.unpack("!h", rest[:2])[0], rest[2:]
        values = []
        for _ in range(count):
            length, rest = struct.unpack("!i", rest[:4])[0], rest[4:]
            text = None if length < 0 else rest[:length].decode()
            values.append(int(text) if text and re.fullmatch(r"-?\d+", text) else text)
            rest = rest[max(length, 0):]
        self.bound = (self.prepared[name], tuple(values))
        self.send(b"2")

    def execute(self, _):
        self.carry_out(*self.bound, False)

    def error(self, code, words):
        fields = [b"SERROR", b"C" + code.encode(), b"M" + words.encode()]
        self.send(b"E", b"\0".join(fields) + b"\0\0")

    def refuse(self, code, words):
        if self.status == "T":
            self.status = "E"
        self.error(code, words)
        raise Refused

    def refuse_unknown(self, sql):
        if UNKNOWN_SQL.search(sql):
            self.refuse("42601", 'at or near "%s": syntax error' % UNKNOWN_SQL.search(sql)[0])

    def carry_out(self, sql, values, describes):
        self.refuse_unknown(sql)
        sql = sql.strip()
        verb = sql.split()[0].upper()
        if verb in ("ROLLBACK", "ABORT"):
            self.ended("ROLLBACK")
            return
        if self.status == "E":
            if verb in ("COMMIT", "END"):
                self.ended("ROLLBACK")
                return
            self.refuse("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        if copied := re.fullmatch(r"(?i)COPY (\w+) \(([\w, ]+)\) FROM STDIN", sql):
            places = ", ".join("?" for _ in copied[2].split(","))
            self.copying = "INSERT INTO %s (%s) VALUES (%s)" % (copied[1], copied[2], places)
            self.send(b"G", struct.pack("!bh", 0, 0))
            return
        if (configured := self.configured(sql)) is not None:
            self.answer(configured, "CONFIGURE ZONE 1", describes)
            return
        if (verb in ("COMMIT", "END") or self.status == "I" and verb in ("INSERT", "UPDATE")) and self.node.wants_a_retry():
            if self.status == "T":
                self.rows.execute("ROLLBACK")
                self.status = "I"
                self.leave_turn()
            self.refuse(*RETRY)
        if self.status == "I" and verb != "SELECT" and "READ ONLY" not in sql.upper():
            self.take_turn()
        try:
            self.run(sql, values, verb, describes)
        finally:
            if self.status == "I":
                self.leave_turn()

    def run(self, sql, values, verb, describes):
        try:
            cursor = self.rows.execute(in_sqlite(sql), values)
            found = cursor.fetchall() if cursor.description else None
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                self.refuse(*RETRY)
            self.refuse("42601", str(error))
        except sqlite3.IntegrityError as error:
            self.refuse("23505", str(error))
        if verb in ("BEGIN", "START"):
            self.status = "T"
        elif verb in ("COMMIT", "END"):
            self.status = "I"
        changed = max(cursor.rowcount, 0)
        tags = {"INSERT": "INSERT 0 %d" % changed, "UPDATE": "UPDATE %d" % changed, "DELETE": "DELETE %d" % changed}
        names = {"END": "COMMIT", "START": "BEGIN", "CREATE": "CREATE TABLE", "DROP": "DROP TABLE"}
        told = "SELECT %d" % len(found) if found is not None else tags.get(verb, names.get(verb, verb))
        self.answer(found, told, describes)

    def ended(self, told):
        if self.rows.in_transaction:
            self.rows.execute("ROLLBACK")
        self.status = "I"
        self.leave_turn()
        self.answer(None, told, False)

    def configured(self, sql):
        """Rows of what is not kept in tables; nothing for any other statement."""
        zone = r"(?i)ALTER (RANGE (?:default|meta|liveness|system)|DATABASE system) CONFIGURE ZONE USING num_replicas = ([1-9]\d*)"
        if asked := re.fullmatch(zone, sql):
            self.node.zones[asked[1].lower()] = int(asked[2])
            return []
        if re.fullmatch(r"(?i)CREATE DATABASE( IF NOT EXISTS)? \w+", sql):
            return []
        ranges = r"(?i)SELECT count\(\*\) FROM \[SHOW RANGES FROM DATABASE system\] WHERE array_length\(replicas, 1\) < (\d+)"
        if lacking := re.fullmatch(ranges, sql):
            held = min(self.node.replicas, self.node.zones.get("database system", 5))
            return [(0 if held >= int(lacking[1]) else 30,)]
        if "crdb_internal" in sql:
            self.refuse("42P01", "relation does not exist: %s" % sql)
        return None

    def answer(self, found, told, describes):
        if found and describes:
            columns = b"".join(b"c\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for _ in found[0])
            self.send(b"T", struct.pack("!h", len(found[0])) + columns)
        rows = b""
        for row in found or []:
            cells = [None if cell is None else str(cell).encode() for cell in row]
            body = struct.pack("!h", len(cells)) + b"".join(
                struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells
            )
            rows += b"D" + struct.pack("!i", len(body) + 4) + body
        told = told.encode() + b"\0"
        self.line.sendall(rows + b"C" + struct.pack("!i", len(told) + 4) + told)


def main(arguments):
    command = arguments[0] if arguments else ""
    if command == "version":
        print("Build Tag:    %s\nBuild Time:   2021/05/17 13:32:02\nDistribution: CCL" % VERSION)
    elif command == "start":
        Node(flags("start", arguments[1:], START_FLAGS)).run()
    elif command == "init":
        given = flags("init", arguments[1:], INIT_FLAGS)
        answer = ask(address("host", given.get("host", "localhost:26257")), "init")
        if answer is None:
            fail("cannot dial server.\nIs the server running?")
        if answer != "initialized":
            fail("cluster has already been initialized")
        print("Cluster successfully initialized")
    else:
        fail('unknown command "%s" for "cockroach"' % command)


main(sys.argv[1:])
