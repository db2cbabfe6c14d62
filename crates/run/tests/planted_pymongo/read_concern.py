"""See the package."""


class ReadConcern:
    def __init__(self, level):
        self.level = level
