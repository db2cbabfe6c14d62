"""See the package."""


class WriteConcern:
    def __init__(self, w, wtimeout):
        self.w, self.wtimeout = w, wtimeout
