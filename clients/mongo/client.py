"""A client program for MongoDB, by its driver for Python (pymongo): keys and values on a replica set, one thread for each session.

It speaks the protocol of docs/guide/client-programs.md over its standard input and output, as one that speaks keys. It needs
Python 3.8, pymongo 3.11 and MongoDB 5.0, or newer. What it owns: which commands an operation becomes, and which errors are
definite.

A key is a document, `{_id: KEY, v: VALUE}`. One operation on one key is one command, which is atomic; a scan and several
operations are a transaction with read concern "snapshot", in which reads of several keys are one command, and so are writes of several.
Every write and every commit has write concern "majority". A read
of one key has read concern "linearizable", or with the option `read_concern: majority` is a transaction of that concern: outside
of one a node that leads no more would answer it from what it has. The driver repeats nothing but a commit, which the server carries
out once (specification of the drivers, "Transactions").
"""

import importlib
import json
import os
import queue
import sys
import threading

VERSION = 1
COLLECTION = "holdfast"
# The longest that a connection is waited for.
CONNECT_MS = 5000
# How many documents of a scan come at a time.
BATCH = 10_000

LINEARIZABLE, MAJORITY, SNAPSHOT = "linearizable", "majority", "snapshot"

LOWEST, HIGHEST = -(2**63), 2**63 - 1

# Error codes that a reply may have, by their numbers: what each is counted under, and whether it proves that the command wrote
# nothing, now or later. Source: MongoDB's `src/mongo/base/error_codes.yml` and the manual, "Error Codes". Definite are those that a
# command raises before its storage transaction commits, and which no wait behind the commit can raise: an error of that
# wait stands in `writeConcernError`, never here. `error_codes.yml` on the codes of a node that is no primary: "regardless of whether
# some write may have happened. If you care about whether a write could have happened, check for individual codes": the three
# here are found before anything is written; 189, 11602 and all of a shutdown interrupt what may just have been written.
CODES = {
    2: ("other", True),  # BadValue
    9: ("other", True),  # FailedToParse
    13: ("other", True),  # Unauthorized
    14: ("other", True),  # TypeMismatch
    18: ("other", True),  # AuthenticationFailed
    20: ("other", True),  # IllegalOperation
    59: ("other", True),  # CommandNotFound
    72: ("other", True),  # InvalidOptions
    73: ("other", True),  # InvalidNamespace
    112: ("serialization", True),  # WriteConflict
    121: ("other", True),  # DocumentValidationFailure
    10107: ("read-only", True),  # NotWritablePrimary
    10334: ("other", True),  # BSONObjectTooLarge
    11000: ("serialization", True),  # DuplicateKey: another upsert of the same key came first
    13435: ("read-only", True),  # NotPrimaryNoSecondaryOk
    13436: ("read-only", True),  # NotPrimaryOrSecondary
    6: ("connection", False),  # HostUnreachable
    7: ("connection", False),  # HostNotFound
    24: ("serialization", False),  # LockTimeout
    50: ("timeout", False),  # MaxTimeMSExpired
    64: ("timeout", False),  # WriteConcernFailed, later WriteConcernTimeout
    79: ("other", False),  # UnknownReplWriteConcern
    89: ("timeout", False),  # NetworkTimeout
    91: ("connection", False),  # ShutdownInProgress
    100: ("other", False),  # UnsatisfiableWriteConcern
    189: ("read-only", False),  # PrimarySteppedDown
    251: ("serialization", False),  # NoSuchTransaction
    262: ("timeout", False),  # ExceededTimeLimit
    9001: ("connection", False),  # SocketException
    11600: ("connection", False),  # InterruptedAtShutdown
    11601: ("timeout", False),  # Interrupted
    11602: ("read-only", False),  # InterruptedDueToReplStateChange
}
BAD_VALUE, NAMESPACE_EXISTS, DUPLICATE_KEY = 2, 48, 11000

# Labels of errors. Source: the drivers' specification "Transactions" and the manual, "Transactions", "Drivers API". Before a commit is
# sent nothing of a transaction can have happened, whatever the error. At a commit: with the first label, and without the
# second, "a transaction will never be committed twice" when all of it is run again, so it was not committed; everything else
# leaves it open.
TRANSIENT = "TransientTransactionError"
UNKNOWN_COMMIT = "UnknownTransactionCommitResult"


class Refused(Exception):
    """A condition of the transaction's own was not met."""


class Failed(Exception):
    """An error, with its class, its code and whether it proves that nothing was written."""

    def __init__(self, kind, code, text, definite):
        super().__init__(text)
        self.kind, self.code, self.definite = kind, code, definite


def verdict_of_reply(reply):
    """What a reply says that is no success: class, code, text and whether nothing was written. None of a success."""
    concern = reply.get("writeConcernError")
    errors = reply.get("writeErrors")
    if not reply.get("ok"):
        found = reply
    elif errors:
        found = errors[0]
    elif concern:
        found = concern
    else:
        return None
    code = found.get("code")
    is_transient = TRANSIENT in reply.get("errorLabels", ())
    kind, definite = CODES.get(code, ("serialization" if is_transient else "other", False))
    text = " ".join(str(found.get("errmsg") or found.get("codeName") or "no words").split())
    return kind, None if code is None else str(code), text, definite and not concern


def verdict_of_exception(errors, error):
    """The same of what the driver raises, outside of a transaction. `errors` is its module of exceptions."""
    text = " ".join(str(error).split()) or type(error).__name__
    code = getattr(error, "code", None)
    if code is None and isinstance(getattr(error, "details", None), dict):
        code = error.details.get("code")
    shown = str(code) if isinstance(code, int) else None
    if isinstance(error, errors.ServerSelectionTimeoutError):
        # No node was found, so none was asked.
        return "connection", shown, text, True
    if isinstance(error, (errors.DocumentTooLarge, errors.InvalidDocument, OverflowError)):
        # The driver could not put it into a message.
        return "other", shown, text, True
    if isinstance(error, (errors.NetworkTimeout, errors.ExecutionTimeout, errors.WTimeoutError)):
        return "timeout", shown, text, False
    if code in CODES:
        return CODES[code][0], shown, text, False
    return ("connection" if isinstance(error, errors.ConnectionFailure) else "other"), shown, text, False


def is_uncommitted(error):
    """Whether an error of a commit proves that the transaction was not committed and never will be."""
    has = getattr(error, "has_error_label", lambda label: False)
    return has(TRANSIENT) and not has(UNKNOWN_COMMIT)


def sound(value):
    """A value as it was stored by us; what is none of ours is told as foreign."""
    if isinstance(value, str):
        return value
    numbers = value if isinstance(value, list) else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in numbers):
        return {"foreign": str(value)[:60]}
    return value


def range_of(prefix, after):
    """The filter of a scan. MongoDB compares texts byte by byte where no collation is set."""
    bounds = {"$gt": after} if after is not None and after >= prefix else {"$gte": prefix}
    if prefix:
        bounds["$lt"] = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return {"_id": bounds}


def within(limit_ms):
    """A little less than the load waits, so that what went wrong is heard."""
    return max(1, limit_ms * 9 // 10)


def is_of_several(operations):
    """Whether these touch several keys, or may."""
    return len(operations) > 1 or operations[0]["do"] in ("scan", "add")


class Output:
    """Lines to the load; one at a time."""

    def __init__(self, file):
        self.file = file
        self.lock = threading.Lock()

    def say(self, message):
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self.lock:
            self.file.write(line)
            self.file.flush()


class Driver:
    """The driver's modules, and a client for each node, which all its sessions share: the driver keeps a pool of connections."""

    def __init__(self, name):
        def module(part):
            return importlib.import_module(name + part)

        self.pymongo, self.errors = module(""), module(".errors")
        self.read_concern = module(".read_concern").ReadConcern
        self.write_concern = module(".write_concern").WriteConcern
        self.clients, self.collections = {}, set()
        self.lock = threading.Lock()

    def client(self, open_, options):
        arguments = {
            # To this node and no other, whatever it is.
            "directConnection": True,
            # What is repeated behind our back has two outcomes.
            "retryWrites": False,
            "retryReads": False,
            "maxPoolSize": None,
            "connectTimeoutMS": min(within(open_["timeout_ms"]), CONNECT_MS),
            "serverSelectionTimeoutMS": min(within(open_["timeout_ms"]), CONNECT_MS),
            "socketTimeoutMS": within(open_["timeout_ms"]),
            **options,
        }
        if open_["user"]:
            arguments.setdefault("username", open_["user"])
            arguments.setdefault("password", open_["password"])
        where = (open_["url"],) if open_["url"] else (open_["host"], open_["port"])
        name = json.dumps([where, arguments], sort_keys=True)
        with self.lock:
            if name not in self.clients:
                self.clients[name] = self.pymongo.MongoClient(*where, **arguments)
            return self.clients[name]

    def make_collection(self, database, concern):
        """A transaction should not have to make it: two that do so meet."""
        with self.lock:
            if database.name in self.collections:
                return
            reply = database.command({"create": COLLECTION, "writeConcern": concern}, check=False)
            told = verdict_of_reply(reply)
            if told and told[1] != str(NAMESPACE_EXISTS):
                raise Failed(told[0], told[1], told[2], True)
            self.collections.add(database.name)


def typed(text):
    """An option as Python has it: numbers and truth as such."""
    try:
        return int(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text)


class Session(threading.Thread):
    """A session, and what is asked of it one after the other."""

    def __init__(self, number, driver, output):
        super().__init__(daemon=True, name=f"session {number}")
        self.driver, self.output = driver, output
        self.asked = queue.Queue()
        self.client = self.database = None
        self.reads = LINEARIZABLE
        # Whether what was sent may have become permanent; and the transaction of the driver's that is open.
        self.may_be_done = False
        self.under_way = None

    def run(self):
        while True:
            message = self.asked.get()
            if message is None:
                return
            said = self.answer(message)
            self.output.say({"ask": message["ask"], **said})
            self.tidy()

    def answer(self, message):
        is_open = "open" in message
        self.may_be_done = False
        try:
            if is_open:
                return {"ok": self.open(message["open"])}
            asked = message["transact"]
            return self.transact(asked["operations"], asked["timeout_ms"])
        except Failed as error:
            kind, code, text, definite = error.kind, error.code, str(error), error.definite
        except Exception as error:
            kind, code, text, definite = verdict_of_exception(self.driver.errors, error)
        definite = definite or is_open or not self.may_be_done
        return {"failed" if definite else "unknown": {"class": kind, "code": code, "text": text}}

    def open(self, open_):
        options = {name: typed(value) for name, value in open_["options"].items()}
        self.reads = options.pop("read_concern", LINEARIZABLE)
        if self.reads not in (LINEARIZABLE, MAJORITY):
            raise Failed("other", None, f"read_concern is {LINEARIZABLE} or {MAJORITY}, not {self.reads}", True)
        self.client = self.driver.client(open_, options)
        self.database = self.client[open_["database"] or COLLECTION]
        leads = bool(self.client.admin.command("hello").get("isWritablePrimary"))
        if leads:
            self.driver.make_collection(self.database, self.concern(open_["timeout_ms"]))
        return {"takes_writes": leads}

    @staticmethod
    def concern(limit_ms):
        """What a write waits for."""
        return {"w": MAJORITY, "wtimeout": within(limit_ms)}

    def transact(self, operations, limit_ms):
        """A transaction, whole or not at all."""
        is_read = len(operations) == 1 and operations[0]["do"] == "read"
        step, found = 0, []
        try:
            if operations and not is_of_several(operations) and not (is_read and self.reads == MAJORITY):
                found.append(self.carry_out(operations[0], None, limit_ms))
            elif operations:
                # Of a single read the option decides; everything else sees one moment.
                session = self.begin(MAJORITY if is_read else SNAPSHOT, limit_ms)
                kinds = {operation["do"] for operation in operations}
                if kinds == {"read"}:
                    found = self.read_together(operations, session)
                elif kinds == {"write"}:
                    found = self.write_together(operations, session)
                else:
                    for step, operation in enumerate(operations):
                        found.append(self.carry_out(operation, session, limit_ms))
                self.commit(session)
        except Refused as error:
            return {"refused": {"step": step, "reason": str(error)}}
        return {"ok": {"found": found}}

    def begin(self, reads, limit_ms):
        """A transaction: nothing of it is done before its commit is sent."""
        concern = self.concern(limit_ms)
        self.under_way = self.client.start_session(causal_consistency=False)
        self.under_way.start_transaction(
            read_concern=self.driver.read_concern(reads),
            write_concern=self.driver.write_concern(concern["w"], wtimeout=concern["wtimeout"]),
            max_commit_time_ms=limit_ms,
        )
        return self.under_way

    def commit(self, session):
        self.may_be_done = True
        try:
            session.commit_transaction()
        except Exception as error:
            kind, code, text, _ = verdict_of_exception(self.driver.errors, error)
            raise Failed(kind, code, text, is_uncommitted(error)) from error

    def tidy(self):
        """Aborts what a transaction left under way, after its answer: an abort may have to wait for a node that is lost."""
        session, self.under_way = self.under_way, None
        if session is not None:
            try:
                session.end_session()
            except Exception:
                # The server aborts by itself what nobody ends.
                pass

    def carry_out(self, operation, session, limit_ms):
        """One operation, by a command of its own; within the transaction of a session, if there is one."""
        do = operation["do"]
        if do == "read":
            return {"value": self.read(operation["key"], session, limit_ms)}
        if do == "scan":
            return {"entries": self.scan(operation, session)}
        key = operation["key"]
        if do == "write":
            self.update(key, {"$set": {"v": operation["value"]}}, True, session, limit_ms)
        elif do == "insert":
            self.insert(key, operation["value"], session, limit_ms)
        elif do == "append":
            self.append(key, operation["element"], session, limit_ms)
        elif do == "compare-and-set":
            self.exchange(key, operation["expected"], operation["new"], session, limit_ms)
        elif do == "add":
            self.add(key, operation["amount"], operation["floor"], session)
        else:
            raise Failed("other", None, f"there is no operation {do}", True)
        return "done"

    def command(self, command, session):
        """The reply to a command; raises what is no success."""
        self.may_be_done = session is None
        reply = self.database.command(command, session=session, check=False)
        told = verdict_of_reply(reply)
        if told:
            raise Failed(*told)
        return reply

    def read(self, key, session, limit_ms):
        command = {"find": COLLECTION, "filter": {"_id": key}, "limit": 1, "singleBatch": True}
        if session is None:
            command.update(readConcern={"level": LINEARIZABLE}, maxTimeMS=limit_ms)
        found = self.command(command, session)["cursor"]["firstBatch"]
        return sound(found[0].get("v")) if found else None

    def scan(self, operation, session):
        limit = operation["limit"]
        command = {
            "find": COLLECTION,
            "filter": range_of(operation["prefix"], operation["after"]),
            "sort": {"_id": 1},
            "limit": limit,
            "batchSize": min(limit, BATCH),
        }
        return self.documents(command, session) if limit else []

    def documents(self, command, session):
        """What a query finds: keys and values, batch by batch."""
        cursor = self.command(command, session)["cursor"]
        entries = [[one["_id"], sound(one.get("v"))] for one in cursor["firstBatch"]]
        while cursor["id"]:
            more = {"getMore": cursor["id"], "collection": COLLECTION, "batchSize": BATCH}
            cursor = self.command(more, session)["cursor"]
            entries += [[one["_id"], sound(one.get("v"))] for one in cursor["nextBatch"]]
        return entries

    def read_together(self, operations, session):
        """Reads of a transaction that does nothing else."""
        keys = [operation["key"] for operation in operations]
        held = dict(self.documents({"find": COLLECTION, "filter": {"_id": {"$in": keys}}, "batchSize": BATCH}, session))
        return [{"value": held.get(key)} for key in keys]

    def write_together(self, operations, session):
        """Writes of a transaction that does nothing else, in their order."""
        updates = [
            {"q": {"_id": one["key"]}, "u": {"$set": {"v": one["value"]}}, "upsert": True} for one in operations
        ]
        met = self.write({"update": COLLECTION, "updates": updates}, session, None)
        if met != len(operations):
            raise Failed("other", None, f"{met} of {len(operations)} documents were written", True)
        return ["done"] * len(operations)

    def write(self, command, session, limit_ms):
        """A command that writes: how many documents it met. Within a transaction the commit has the write concern."""
        if session is None:
            command["writeConcern"] = self.concern(limit_ms)
        return self.command(command, session)["n"]

    def update(self, key, change, is_upsert, session, limit_ms, condition=None):
        one = {"q": {"_id": key, **(condition or {})}, "u": change, "upsert": is_upsert}
        return self.write({"update": COLLECTION, "updates": [one]}, session, limit_ms)

    def insert(self, key, value, session, limit_ms):
        command = {"insert": COLLECTION, "documents": [{"_id": key, "v": value}]}
        try:
            self.write(command, session, limit_ms)
        except Failed as error:
            if error.code == str(DUPLICATE_KEY) and error.definite:
                raise Refused("something is there already") from error
            raise

    def append(self, key, element, session, limit_ms):
        try:
            self.update(key, {"$push": {"v": element}}, True, session, limit_ms)
        except Failed as error:
            # "The field 'v' must be an array but is of type long".
            if error.code == str(BAD_VALUE) and error.definite:
                raise Refused("no list is there") from error
            raise

    def exchange(self, key, expected, new, session, limit_ms):
        if expected is None:
            return self.insert(key, new, session, limit_ms)
        # As an expression: a plain condition on a number also holds for a list that has it.
        condition = {"$expr": {"$eq": ["$v", {"$literal": expected}]}}
        if self.update(key, {"$set": {"v": new}}, False, session, limit_ms, condition) == 0:
            raise Refused("another value is there")

    def add(self, key, amount, floor, session):
        """Read and written within a transaction: another that writes the key meanwhile is a conflict."""
        held = self.read(key, session, None)
        if isinstance(held, (list, str)):
            raise Refused("no number is there")
        total = (held or 0) + amount
        if not LOWEST <= total <= HIGHEST:
            raise Refused("the sum would have more than 64 bits")
        if floor is not None and total < floor:
            raise Refused(f"the sum would be {total}, below its floor")
        self.update(key, {"$set": {"v": total}}, True, session, None)


def greeting(hello):
    """The driver, loaded."""
    if hello["protocol"] != VERSION:
        raise ImportError(f"this program speaks version {VERSION} of the protocol")
    if hello.get("speaks") != "keys":
        raise ImportError("this program speaks keys and values, and no SQL")
    if hello["folder"]:
        sys.path.insert(0, hello["folder"])
    return Driver(hello["driver"] or "pymongo")


def main():
    # What a driver prints must not get among the answers.
    output = Output(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    sessions = {}
    driver = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "hello" in message:
            try:
                driver = greeting(message["hello"])
            except Exception as error:
                told = {"class": "other", "text": f"{type(error).__name__}: {' '.join(str(error).split())}"}
                output.say({"ask": message["ask"], "failed": told})
                continue
            ok = {"protocol": VERSION, "speaks": "keys", "rewrites_lists": True}
            output.say({"ask": message["ask"], "ok": ok})
        elif "close" in message:
            session = sessions.pop(message["session"], None)
            if session is not None:
                session.asked.put(None)
        else:
            number = message["session"]
            if "open" in message:
                sessions[number] = Session(number, driver, output)
                sessions[number].start()
            sessions[number].asked.put(message)
    # Connections end with the process, whatever they are doing.
    os._exit(0)


if __name__ == "__main__":
    main()
