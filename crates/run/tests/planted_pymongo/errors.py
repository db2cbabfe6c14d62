"""The exceptions of pymongo that `clients/mongo` knows, in their order of descent."""


class PyMongoError(Exception):
    def __init__(self, message="", labels=()):
        super().__init__(message)
        self.labels = set(labels)

    def has_error_label(self, label):
        return label in self.labels


class OperationFailure(PyMongoError):
    def __init__(self, error, code=None, labels=()):
        super().__init__(error, labels)
        self.code, self.details = code, {"code": code}


class ExecutionTimeout(OperationFailure):
    pass


class WTimeoutError(OperationFailure):
    pass


class ConnectionFailure(PyMongoError):
    pass


class AutoReconnect(ConnectionFailure):
    def __init__(self, message="", details=None, labels=()):
        super().__init__(message, labels)
        self.details = details or {}


class NetworkTimeout(AutoReconnect):
    pass


class ServerSelectionTimeoutError(AutoReconnect):
    pass


class InvalidDocument(PyMongoError):
    pass


class DocumentTooLarge(InvalidDocument):
    pass
