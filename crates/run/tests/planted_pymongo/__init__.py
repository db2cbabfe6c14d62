"""A stand-in for the driver pymongo and the replica set behind it, in memory, for the tests of `clients/mongo`.

It knows the commands that the program sends, and asserts what they must have: concerns outside of a transaction, none within. What
it does wrong, the name of a key tells: `error/CODE` is that error, `concern/CODE` a write that was made and is not on a majority,
`raise/NAME` an exception, and `commit/...` what becomes of the commit of a transaction that writes it. The key `commands` holds how
many commands it was given.
"""

import threading

from . import errors

STORE = {}
COMMANDS = []
LOCK = threading.Lock()
LABELS = {"unknown": ["UnknownTransactionCommitResult"], "aborted": ["TransientTransactionError"]}


def failure(code, text="planted"):
    return {"ok": 0, "code": code, "codeName": "Planted", "errmsg": text}


def planted(key, session):
    """What goes wrong with this key before anything is done."""
    kind, _, what = key.partition("/")
    if kind == "error":
        return failure(int(what))
    if kind == "raise":
        raise getattr(errors, what)("planted")
    if kind == "commit" and session is not None:
        session.commits_as = what
    return None


class Database:
    def __init__(self, client, name):
        self.client, self.name = client, name

    def command(self, command, session=None, check=True):
        if command == "hello":
            return {"ok": 1, "isWritablePrimary": self.client.leads}
        assert not check, "replies are judged by the program"
        with LOCK:
            COMMANDS.append(next(iter(command)))
            STORE["commands"] = len(COMMANDS)
            held = STORE if session is None else session.held
            return getattr(self, next(iter(command)))(command, held, session)

    def create(self, command, held, session):
        assert command["writeConcern"]["w"] == "majority" and session is None
        return failure(48, "collection exists")

    def concerned(self, command, session):
        if session is not None:
            assert "writeConcern" not in command and session.begun is not None
        else:
            assert command["writeConcern"]["w"] == "majority" and command["writeConcern"]["wtimeout"] > 0

    def written(self, key, reply, session):
        kind, _, what = key.partition("/")
        if kind == "concern" and session is None:
            reply["writeConcernError"] = {"code": int(what), "errmsg": "planted"}
        return reply

    def insert(self, command, held, session):
        self.concerned(command, session)
        (document,) = command["documents"]
        key = document["_id"]
        wrong = planted(key, session)
        if wrong:
            return wrong
        if key in held:
            return {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "E11000 duplicate key"}]}
        held[key] = document["v"]
        return self.written(key, {"ok": 1, "n": 1}, session)

    def update(self, command, held, session):
        self.concerned(command, session)
        first, *others = command["updates"]
        if not others:
            return self.update_one(first, held, session)
        assert session is not None, "a command on several documents is not atomic"
        assert all(not one.keys() - {"q", "u", "upsert"} and one["upsert"] for one in command["updates"])
        replies = [self.update_one(one, held, session) for one in command["updates"]]
        wrong = [reply for reply in replies if not reply["ok"]]
        return wrong[0] if wrong else {"ok": 1, "n": sum(reply["n"] for reply in replies)}

    def update_one(self, one, held, session):
        key, change, is_there = one["q"]["_id"], one["u"], one["q"]["_id"] in held
        wrong = planted(key, session)
        if wrong:
            return wrong
        if "$expr" in one["q"]:
            field, literal = one["q"]["$expr"]["$eq"]
            assert field == "$v"
            is_there = is_there and held[key] == literal["$literal"]
        if not is_there and not one["upsert"]:
            return {"ok": 1, "n": 0, "nModified": 0}
        if "$set" in change:
            held[key] = change["$set"]["v"]
        else:
            before = held.get(key, [])
            if not isinstance(before, list):
                text = "The field 'v' must be an array but is of type long"
                return {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": 2, "errmsg": text}]}
            held[key] = before + [change["$push"]["v"]]
        return self.written(key, {"ok": 1, "n": 1}, session)

    def find(self, command, held, session):
        key = command["filter"]["_id"]
        if session is None:
            assert command["readConcern"] == {"level": "linearizable"} and command["maxTimeMS"] > 0
        else:
            assert "readConcern" not in command and session.begun is not None
        if isinstance(key, str):
            wrong = planted(key, session)
            if wrong:
                return wrong
            found = [{"_id": key, "v": held[key]}] if key in held else []
            return {"ok": 1, "cursor": {"id": 0, "firstBatch": found}}
        assert session is not None, "a scan sees one moment"
        if "$in" in key:
            self.client.left = [{"_id": one, "v": held[one]} for one in sorted(set(key["$in"])) if one in held]
            return self.batch("firstBatch")
        tests = {"$gt": str.__gt__, "$gte": str.__ge__, "$lt": str.__lt__}
        keys = sorted(one for one in held if all(tests[test](one, bound) for test, bound in key.items()))
        self.client.left = [{"_id": one, "v": held[one]} for one in keys[: command["limit"]]]
        return self.batch("firstBatch")

    def getMore(self, command, held, session):
        assert command["getMore"] == 7 and session is not None
        return self.batch("nextBatch")

    def batch(self, name):
        # Two at a time, so that more has to be asked for.
        batch, self.client.left = self.client.left[:2], self.client.left[2:]
        return {"ok": 1, "cursor": {"id": 7 if self.client.left else 0, name: batch}}


class Session:
    def __init__(self):
        self.begun = self.held = None
        self.commits_as = ""

    def start_transaction(self, read_concern, write_concern, max_commit_time_ms):
        assert read_concern.level in ("snapshot", "majority") and write_concern.w == "majority" and max_commit_time_ms > 0
        self.begun, self.held = dict(STORE), dict(STORE)

    def commit_transaction(self):
        begun, self.begun = self.begun, None
        if self.commits_as == "aborted":
            raise errors.OperationFailure("planted", 251, LABELS["aborted"])
        with LOCK:
            STORE.update({key: value for key, value in self.held.items() if begun.get(key) != value})
        if self.commits_as == "unknown":
            raise errors.OperationFailure("planted", 64, LABELS["unknown"])
        if self.commits_as == "lost":
            raise errors.AutoReconnect("planted", None, LABELS["unknown"])

    def end_session(self):
        self.begun = None


class MongoClient:
    def __init__(self, host, port, directConnection, retryWrites, retryReads, **options):
        assert directConnection and not retryWrites and not retryReads
        assert set(options) <= {"maxPoolSize", "connectTimeoutMS", "serverSelectionTimeoutMS", "socketTimeoutMS"}
        self.leads = not host.endswith(".1")
        self.admin = Database(self, "admin")
        self.left = []

    def __getitem__(self, name):
        return Database(self, name)

    def start_session(self, causal_consistency):
        assert causal_consistency is False
        return Session()
