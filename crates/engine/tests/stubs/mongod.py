#!/usr/bin/python3 -I
"""A stand-in for the program `mongod` of MongoDB 7.0, as strict about its command line and its configuration as that is.

It keeps engines/mongodb.yaml honest where the database itself cannot be had: flags, parameters, the replica set that waits for
`replSetInitiate`, the replies to `hello` and `replSetGetStatus`, the wire protocol. Sources: the manual, "mongod", "replSetInitiate",
"hello", "replSetGetStatus", "Replica Set Member States", "MongoDB Wire Protocol"; bsonspec.org. It holds no documents. The first member
of the configuration that answers is the primary.
"""

import json
import os
import socket
import struct
import sys
import threading

SWITCHES = {"ipv6", "nounixsocket"}
FLAGS = {"replSet", "dbpath", "port", "bind_ip", "wiredTigerCacheSizeGB", "setParameter"}
PARAMETERS = {"diagnosticDataCollectionEnabled", "syncdelay", "transactionLifetimeLimitSeconds"}
OP_MSG = 2013
TIME = (7 << 32) + 1


class Timestamp(int):
    pass


def fail(words):
    print(words)
    sys.stderr.write("try 'mongod --help' for more information\n")
    sys.exit(2)


def flags(arguments):
    given = {"setParameter": []}
    for argument in arguments:
        name, has_value, value = argument.lstrip("-").partition("=")
        if not argument.startswith("--") or name not in FLAGS | SWITCHES:
            fail("Error parsing command line: unrecognised option '%s'" % argument)
        if (name in SWITCHES) == bool(has_value):
            fail("Error parsing command line: option '--%s' has a wrong number of values" % name)
        if name == "setParameter":
            parameter = value.partition("=")[0]
            if parameter not in PARAMETERS:
                fail("Error parsing command line: Unknown --setParameter '%s'" % parameter)
            given[name].append(value)
        else:
            given[name] = value
    for needed in ("replSet", "dbpath", "port", "bind_ip"):
        if needed not in given:
            fail("Error parsing command line: --%s is needed here" % needed)
    if float(given.get("wiredTigerCacheSizeGB", 1)) < 0.25:
        fail("Error parsing command line: storage.wiredTiger.engineConfig.cacheSizeGB must be greater than or equal to 0.25")
    if not os.path.isdir(given["dbpath"]):
        print("NonExistentPath: Data directory %s not found" % given["dbpath"])
        sys.exit(100)
    return given


def element(name, value):
    name = name.encode() + b"\0"
    if isinstance(value, bool):
        return b"\x08" + name + bytes([value])
    if isinstance(value, Timestamp):
        return b"\x11" + name + struct.pack("<Q", value)
    if isinstance(value, int):
        return b"\x10" + name + struct.pack("<i", value)
    if isinstance(value, float):
        return b"\x01" + name + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"\x02" + name + struct.pack("<i", len(text)) + text
    if isinstance(value, list):
        return b"\x04" + name + document({str(place): one for place, one in enumerate(value)})
    return b"\x03" + name + document(value)


def document(fields):
    body = b"".join(element(name, value) for name, value in fields.items()) + b"\0"
    return struct.pack("<i", len(body) + 4) + body


def read_document(data, at):
    (length,) = struct.unpack_from("<i", data, at)
    end, at, fields = at + length, at + 4, {}
    while data[at]:
        kind, stop = data[at], data.index(b"\0", at + 1)
        name, at = data[at + 1 : stop].decode(), stop + 1
        if kind == 0x10:
            (value,), at = struct.unpack_from("<i", data, at), at + 4
        elif kind in (0x11, 0x12):
            (value,), at = struct.unpack_from("<q", data, at), at + 8
        elif kind == 0x01:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif kind == 0x08:
            value, at = bool(data[at]), at + 1
        elif kind == 0x02:
            (size,) = struct.unpack_from("<i", data, at)
            value, at = data[at + 4 : at + 3 + size].decode(), at + 4 + size
        elif kind in (0x03, 0x04):
            value, at = read_document(data, at)
            value = list(value.values()) if kind == 0x04 else value
        else:
            raise ValueError("an element of kind %#x" % kind)
        fields[name] = value
    return fields, end


def exactly(line, count):
    data = b""
    while len(data) < count:
        piece = line.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def refusal(code, name, words):
    return {"ok": 0.0, "errmsg": words, "code": code, "codeName": name}


class Node:
    def __init__(self, given):
        self.name, self.port = given["replSet"], int(given["port"])
        self.addresses = given["bind_ip"].split(",")
        self.path = os.path.join(given["dbpath"], "replset.json")
        self.members = None
        self.known()

    def known(self):
        """The members, once there is a configuration: this node's own, or what another has put beside its own."""
        if self.members is None and os.path.exists(self.path):
            with open(self.path) as file:
                self.members = json.load(file)
        return self.members

    def run(self):
        for address in self.addresses:
            listener = socket.create_server((address, self.port))
            threading.Thread(target=self.accept, args=(listener,)).start()
        print("Waiting for connections", flush=True)

    def accept(self, listener):
        while True:
            line, _ = listener.accept()
            threading.Thread(target=self.serve, args=(line,), daemon=True).start()

    def serve(self, line):
        try:
            with line:
                while True:
                    length, number, _, code = struct.unpack("<iiii", exactly(line, 16))
                    body = exactly(line, length - 16)
                    assert code == OP_MSG and body[4] == 0
                    command, _ = read_document(body, 5)
                    assert command.pop("$db") == "admin"
                    reply = b"\0" * 5 + document(self.answer(command))
                    line.sendall(struct.pack("<iiii", len(reply) + 16, 1, number, OP_MSG) + reply)
        except (OSError, EOFError):
            pass

    def answer(self, command):
        name = next(iter(command))
        if name == "replSetInitiate":
            return self.initiate(command[name])
        if name == "configure":
            with open(self.path, "w") as file:
                json.dump(command[name], file)
            return {"ok": 1.0}
        if name == "hello":
            leads = self.leads()
            write = {"opTime": {"ts": Timestamp(TIME), "t": 1}}
            return {"isWritablePrimary": leads, "secondary": not leads and bool(self.known()), "lastWrite": write, "ok": 1.0}
        if name == "replSetGetStatus":
            if not self.known():
                return refusal(94, "NotYetInitialized", "no replset config has been received")
            return {"set": self.name, "myState": 1 if self.leads() else 2, "ok": 1.0}
        return refusal(59, "CommandNotFound", "no such command: '%s'" % name)

    def own(self, member):
        host, _, port = member.rpartition(":")
        return int(port) == self.port and host.strip("[]") in self.addresses

    def leads(self):
        for member in self.known() or []:
            if self.own(member):
                return True
            if ask(member, {"replSetGetStatus": 1}) is not None:
                return False
        return False

    def initiate(self, config):
        if self.known():
            return refusal(23, "AlreadyInitialized", "already initialized")
        if set(config) - {"_id", "members", "settings", "version"} or config.get("_id") != self.name:
            return refusal(93, "InvalidReplicaSetConfig", "this node was started with the replica set name %s" % self.name)
        if set(config.get("settings", {})) - {"electionTimeoutMillis", "heartbeatIntervalMillis", "chainingAllowed"}:
            return refusal(93, "InvalidReplicaSetConfig", "an unknown setting")
        if any(set(member) != {"_id", "host"} or not 0 <= member["_id"] <= 255 for member in config["members"]):
            return refusal(93, "InvalidReplicaSetConfig", "a member that is none")
        members = [member["host"] for member in config["members"]]
        if not any(self.own(member) for member in members):
            return refusal(74, "NodeNotFound", "No host described in new configuration maps to this node")
        if any(ask(member, {"hello": 1}) is None for member in members if not self.own(member)):
            return refusal(74, "NodeNotFound", "replSetInitiate quorum check failed because not all proposed set members responded")
        for member in members:
            self.answer({"configure": members}) if self.own(member) else ask(member, {"configure": members})
        return {"ok": 1.0}


def ask(member, command):
    """What a member replies to a command; nothing where it is not there."""
    host, _, port = member.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 1) as line:
            body = b"\0" * 5 + document({**command, "$db": "admin"})
            line.sendall(struct.pack("<iiii", len(body) + 16, 1, 0, OP_MSG) + body)
            length, _, _, _ = struct.unpack("<iiii", exactly(line, 16))
            return read_document(exactly(line, length - 16), 5)[0]
    except (OSError, EOFError):
        return None


def main():
    if sys.argv[1:] == ["--version"]:
        print("db version v7.0.5\nBuild Info: {}")
        return
    Node(flags(sys.argv[1:])).run()


main()
