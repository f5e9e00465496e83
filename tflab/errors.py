"""Errors: what was given, what is wrong with it, what would be right."""


class TflabError(Exception):
    """The run failed, for a reason that its user can understand. Commands exit with `status`."""

    status = 1


class UnreadyError(TflabError):
    """No step of a graph can run as it is. What may help is named, and not tried yet."""

    def __init__(
        self,
        message: str,
        shapes: tuple[tuple[str, tuple[int, ...]], ...] = (),  # to feed made-up values of
        fetches: tuple[str, ...] = (),  # each of them could be run
    ) -> None:
        super().__init__(message)
        self.shapes = shapes
        self.fetches = fetches


class RefusedError(TflabError):
    """TensorFlow itself would not do it; what it said meanwhile may tell more."""

    nodes: tuple[str, ...] = ()  # that it named, the one that failed first
    of_device = False  # whether it is a device that cannot do it, and another might
    batch_size: int | None = None  # of the step that failed, where several were measured


class WithheldError(RefusedError):
    """What TensorFlow said of it may quote a file that a graph reads, and is not repeated."""


class RanDryError(RefusedError):
    """The step's own data came to their end, which says all there is to say."""


class LateError(RefusedError):
    """A step did not end in its time."""


class LostTaskError(RefusedError):
    """A task of the cluster is no longer there."""


class UsageError(TflabError):
    """The arguments were wrong before anything ran."""

    status = 2


class SlowerError(TflabError):
    """A measurement is proven to be slower than --fail-if-slower allows."""


class UndecidedError(TflabError):
    """Whether a measurement is slower cannot be told, and --fail-if-undecided was given."""

    status = 3


class EffectsError(UsageError):
    """It was not run: it may touch more than tensors, and nobody has allowed that."""


def reason(error: BaseException) -> str:
    """What went wrong, in words: of the system's errors without their numbers."""
    if isinstance(error, OSError):
        inner = getattr(error, "reason", None)  # that of a URL
        if isinstance(inner, OSError):
            return reason(inner)
        if error.strerror:
            named = f": '{error.filename}'" if error.filename else ""
            return f"{error.strerror}{named}"
    return str(error)
