"""Watcher: tflab in the process of the program.

It notices the import of TensorFlow, and writes the results to a folder of the waiting command. An
error in here ends the watching, but not the program. This imports nothing that a file of the
program may be named like.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import sys
from time import perf_counter_ns, process_time_ns

from tflab.run import Settings, sampler, v1, write_fault, write_segment

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from tflab.run.recorder import Recorder
    from tflab.run.ticks import Ticks

SESSION = "tensorflow.python.client.session"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
FLUSH_NS = 2_000_000_000  # between two times at which the results are written, at most
PART = 4  # of the time so far: at most so much is not written yet
FLUSH_SHARE = 100  # writing takes at most 1 / FLUSH_SHARE of the time


class Watcher:
    """The sampler, its thread, and the recorder. Python calls it at each import, as a finder."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.process = os.getpid()
        self.sampler = sampler.Sampler(settings.start_ns)
        self.recorder: Recorder | None = None  # after TensorFlow is imported
        self.faults: list[str] = []
        self.running = self.stopping = self.forked = self.looking = False
        self.ticks: Ticks | None = None  # once TensorFlow is imported, on Linux
        self.turn_s = sys.getswitchinterval()
        self.wake = _thread.allocate_lock()  # the thread waits for it between two samples
        self.ended = _thread.allocate_lock()  # the thread holds it while it runs
        self.finish_ns = 0  # when the program had ended
        self.flush_at_ns = 0

    def begin(self) -> None:
        atexit.register(self.finish)  # registered first, so called last
        os.register_at_fork(
            before=self.pause, after_in_parent=self.go_on, after_in_child=self.leave_alone
        )
        sys.meta_path.insert(0, self)
        sys.setswitchinterval(sampler.TURN_S)
        self.resume()

    def resume(self) -> None:
        """Start the thread. It does not use the module `threading`, which would list it."""
        if self.running or os.getpid() != self.process:
            return
        self.running, self.stopping = True, False
        self.wake.acquire(blocking=False)
        self.ended.acquire()
        _thread.start_new_thread(self.loop, ())

    def pause(self) -> None:
        """End the thread because the process forks: only the forking thread exists in the child."""
        self.forked = True
        self.stop()

    def go_on(self) -> None:
        """Go on after a fork if TensorFlow is loaded; else Python 3.12 would warn of a thread."""
        if self.recorder:
            self.resume()

    def stop(self) -> None:
        """End the thread, and wait for its end."""
        if self.running:
            self.stopping = True
            self.wake.release()
            if self.ticks:
                self.ticks.wake()
            self.ended.acquire()
            self.ended.release()
            self.running = False

    def leave_alone(self) -> None:
        """Stop watching in a forked child."""
        self.running = False
        if self.recorder:
            self.recorder.stop()

    def loop(self) -> None:
        try:
            while not self.stopping:
                self.wait()
                if not self.stopping:
                    if self.recorder:
                        self.recorder.read_traces()
                        self.recorder.memory.look(process_time_ns(), self.sampler)
                    if perf_counter_ns() > self.flush_at_ns:
                        self.flush()
        except Exception as error:
            self.broke(error)
        finally:
            if self.ticks:
                self.ticks.leave()
            self.ended.release()

    def look(self, frame: FrameType | None) -> None:
        """Sample from the main thread, in the middle of the program. Errors are not raised."""
        try:
            self.sampler.sample(frame)
        except RecursionError:
            pass  # the program is near its limit
        except Exception as error:
            self.broke(error)

    def wait(self) -> None:
        """Wait until it is time to sample, and sample unless the main thread has done so."""
        if self.ticks and self.ticks.ended:
            self.ticks = None
            sys.setswitchinterval(sampler.TURN_S)
        elif self.ticks and not self.ticks.timers:
            self.ticks.start()
        due = self.ticks.wait() if self.ticks else True
        if not self.ticks:
            self.wake.acquire(timeout=sampler.interval_ns(self.sampler.importing) / 1e9)
        if due and not self.stopping:
            self.sampler.sample()

    def broke(self, error: Exception) -> None:
        """Note an error of tflab, and stop watching."""
        if not self.faults:
            self.faults.append(f"{type(error).__name__}: {error}")
        self.stopping = True
        if self.recorder:
            self.recorder.stop()

    def record(self) -> Recorder:
        """Record the runs of this process from now on. TensorFlow's sessions must be imported."""
        from tflab.run import recorder, ticks

        self.recorder = recorder.Recorder(self.settings, self.sampler, self.broke)
        self.recorder.watch_sessions()
        # From now on a timer says when to look; without one, threads take short turns
        self.ticks = ticks.prepared(self.look, self.sampler)
        sys.setswitchinterval(self.turn_s if self.ticks else sampler.TURN_S)
        return self.recorder

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Watch sessions and functions once they are loaded. Python calls this at each import."""
        if self.looking:
            return  # tflab imports a module of its own
        self.sampler.sample_import()
        if self.forked and not self.running and not self.finish_ns:
            self.resume()
        self.looking = True
        collects = gc.isenabled()
        gc.disable()  # a collection would visit all that TensorFlow has made so far
        try:
            session, functions = sys.modules.get(SESSION), sys.modules.get(FUNCTIONS)
            # The last class in the module
            if self.recorder is None and hasattr(session, "InteractiveSession"):
                self.record()
            # After all imports of the module
            elif self.recorder and hasattr(functions, "Function"):
                sys.meta_path.remove(self)
                self.recorder.watch_functions()
        except Exception as error:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            self.broke(error)
        finally:
            self.looking = False
            if collects:
                gc.enable()

    def flush(self, final: bool = False) -> None:
        """Write the results so far."""
        began_ns = perf_counter_ns()
        write_segment(self.settings.folder, self.segment(final))
        took_ns = perf_counter_ns() - began_ns
        later_ns = min(FLUSH_NS, (began_ns - self.sampler.start_ns) // PART)
        self.flush_at_ns = began_ns + max(later_ns, FLUSH_SHARE * took_ns)

    def segment(self, final: bool) -> dict[str, object]:
        """Return the results; with `final`, the main thread waits until all traces are read."""
        recorded: dict[str, Any] = {"notes": (), "own_ns": 0}
        if self.recorder:
            recorded = self.recorder.segment(final)
        return {
            "until_ns": perf_counter_ns() - self.sampler.start_ns,
            "final": final,
            "faults": self.faults,
            "forked": self.forked,
            **self.sampler.segment(),
            **recorded,
            "notes": [*recorded["notes"], *v1.notes()],
            "own_ns": recorded["own_ns"] + (perf_counter_ns() - self.finish_ns if final else 0),
        }

    def finish(self) -> None:
        """Stop at the end of the process, and write everything."""
        if os.getpid() != self.process:
            return
        try:
            self.stop()
            self.sampler.sample()
            self.finish_ns = perf_counter_ns()
            if self.recorder:
                self.recorder.stop()
            self.flush(final=True)
        except BaseException as error:  # also Ctrl-C, which atexit would report as an error
            self.faults.append(f"{type(error).__name__}: {error}")
            try:  # noqa: SIM105  (the program may have a contextlib.py)
                write_fault(self.settings.folder, self.faults[0])
            except OSError:
                pass  # for example a full disk; the command reports missing results
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            end_by_interruption()


def end_by_interruption() -> None:
    """Let this process end by SIGINT, as after an unhandled KeyboardInterrupt. Python does so if
    the last text that it executed ended by one (`run_eval_code_obj` in Python/pythonrun.c)."""
    try:  # noqa: SIM105  (the program may have a contextlib.py)
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass


def begin(given: dict[str, str]) -> None:
    """Watch this process from now on, with the settings of `tflab.run.launch`."""
    settings = Settings(given)
    Watcher(settings).begin()
    if settings.v1:
        v1.Names()
