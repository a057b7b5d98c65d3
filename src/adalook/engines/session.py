"""Ray with good manners: a private one on this machine, or a connection to a cluster, shared by all that use it.

A Ray that is started here listens on 127.0.0.1 only and asks for a token that nobody else knows; it has no dashboard,
sends no usage statistics, has a bounded object store, writes its logs where it is told to, and ends with this process,
however that ends. All of this holds whether or not `ray` was imported before.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import platform
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adalook import __version__
from adalook._extras import import_extra
from adalook.errors import EngineError, MissingExtraError

logger = logging.getLogger("adalook.ray")

OBJECT_STORE_BYTES = 512 * 2**20
"""Of a Ray that is started here: weights and replies are a few megabytes, and are freed when they are read."""
KNOCK_SECONDS = 5.0
CHECK_ADDRESS = "check the address, or leave it out to start a Ray here"
ONE_THREAD = dict.fromkeys(
    ("ADALOOK_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Environment of a worker: parallel are the workers, and results must not depend on the number of threads."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""No reports to Ray's makers, and its future manners already now, which saves a warning."""
TOKEN_VARIABLES = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
DEFAULT_TOKEN = Path(".ray") / "auth_token"
"""Below the home directory: where Ray itself looks for a token."""

_lock = threading.RLock()
_session: RaySession | None = None


class RaySession:
    """A connection that was made here, and how many use it."""

    def __init__(self, ray: Any, address: str | None, stack: contextlib.ExitStack) -> None:
        self.ray, self.address, self._stack = ray, address, stack
        self.users = 0

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def ray_session(address: str | None = None, cpus: int = 1, logs: Path | None = None) -> Iterator[Any]:
    """Within this context the module `ray` is connected; whoever leaves last ends what was started here.

    A connection that somebody else made before, by `ray.init`, is used as it is and left as it is.

    Args:
        address: of a running cluster, such as HOST:6379; None starts a Ray here.
        cpus: how many cores a Ray that is started here may count on.
        logs: a directory for the logs of a Ray that is started here; None drops them with it.
    """
    global _session
    with _lock:
        if _session is None:
            _session = _open(address, cpus, logs)
        elif _session.address != address:
            raise EngineError(
                "this process is connected to another Ray",
                expected=_session.address or "the one that was started here",
                got=address or "a new one",
                remedy="close the agents or models that use it first",
            )
        session = _session
        session.users += 1
    try:
        yield session.ray
    finally:
        with _lock:
            session.users -= 1
            if session.users == 0:
                _session = None
                session.close()


def check_ray(address: str | None, purpose: str) -> None:
    """Raise at once, before anything is begun, if nobody listens, Ray is not installed, or there is no token."""
    cluster = None if _connected_already() else address
    if cluster is not None:
        check_listener(cluster)
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", "ray", purpose)
    if cluster is not None:
        check_token(cluster)


def check_token(address: str) -> None:
    """Raise `EngineError` unless there is a token for a cluster, or authentication was turned off on purpose."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "disabled":
        return
    if any(os.environ.get(name) for name in TOKEN_VARIABLES):
        return
    with contextlib.suppress(RuntimeError):  # no home directory
        if (Path.home() / DEFAULT_TOKEN).is_file():
            return
    raise EngineError(
        f"there is no token for the Ray cluster at {address}",
        expected=f"the cluster's own, in RAY_AUTH_TOKEN, in the file RAY_AUTH_TOKEN_PATH, or in ~/{DEFAULT_TOKEN}",
        remedy="`ray get-auth-token --generate` makes one; RAY_AUTH_MODE=disabled goes on without, at your own risk",
    )


def check_listener(address: str) -> None:
    """Raise `EngineError` if nobody listens at the address: Ray itself would keep trying for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return  # "auto" and other names that Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(f"no Ray answers at {address}", got=error, remedy=CHECK_ADDRESS) from None


def versions_here() -> dict[str, str]:
    """Return what must agree between machines that work together."""
    return {"adalook": __version__, "python": platform.python_version()}


def check_versions(expected: dict[str, str], got: dict[str, str], node: str) -> None:
    """Raise `EngineError` if a machine has other versions than this one."""
    for name, version in expected.items():
        if got.get(name) != version:
            raise EngineError(
                f"a machine of the Ray cluster, {node}, has another {name}",
                expected=version,
                got=got.get(name),
                remedy="install the same versions everywhere: results could differ otherwise",
            )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _connected_already() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and hasattr(ray, "is_initialized") and bool(ray.is_initialized())


def _open(address: str | None, cpus: int, logs: Path | None) -> RaySession:
    """Connect to a cluster, or start a Ray here."""
    with contextlib.ExitStack() as stack:
        if _connected_already():
            return RaySession(importlib.import_module("ray"), address, stack.pop_all())
        began = time.monotonic()
        if address is None:
            logger.info("starting Ray on this machine, which takes some seconds …")
            variables = QUIET | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            variables["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # read at import: ports on 127.0.0.1 only
        else:
            check_listener(address)
            check_token(address)
            logger.info("connecting to Ray at %s …", address)
            variables = dict(QUIET)
            if os.environ.get("RAY_AUTH_MODE") is None:
                variables["RAY_AUTH_MODE"] = "token"
        stack.enter_context(_environment(variables))
        ray = import_extra("ray", extra="ray", purpose="the engine ray")
        stack.enter_context(_constants(local=address is None))
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        options["runtime_env"] = {"env_vars": ONE_THREAD}
        if address is None:
            options |= {"num_cpus": cpus, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            options |= {"object_store_memory": OBJECT_STORE_BYTES, "_temp_dir": stack.enter_context(_temporary(logs))}
        _initialize(ray, address, options)
        stack.callback(_shut_down, ray)
        logger.info("Ray is there after %.1f s", time.monotonic() - began)
        return RaySession(ray, address, stack.pop_all())


START_ATTEMPTS = 3
"""Ray waits half a minute for its own processes, which a loaded machine may take longer to start."""


def _initialize(ray: Any, address: str | None, options: dict[str, Any]) -> None:
    """Call `ray.init`, again if processes of a Ray of our own did not come up in time; errors are one line."""
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            with _signal_handlers_kept():
                ray.init("local" if address is None else address, **options)
            return
        except Exception as error:  # Ray raises plain ones, too
            _shut_down(ray)
            if address is None:
                _end_processes(options["_temp_dir"])
            if address is None and "timed out" in str(error) and attempt < START_ATTEMPTS:
                logger.warning("Ray did not start in time: once more")
                continue
            where = "here" if address is None else f"at {address}"
            raise EngineError(f"cannot use Ray {where}", got=first_line(error), remedy=CHECK_ADDRESS) from error


def _end_processes(directory: str) -> None:
    """Kill what was started with a temporary directory of ours: a start that failed forgets its processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError, ValueError):
            if directory.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def _shut_down(ray: Any) -> None:
    with _signal_handlers_kept():
        ray.shutdown()


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables, which the processes of Ray inherit; whoever leaves restores them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _constants(*, local: bool) -> Iterator[None]:
    """Change what Ray reads only once, when it is imported: it may have been before."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    raylet: Any = importlib.import_module("ray._raylet")
    wanted = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": False} | ({"ENABLE_RAY_CLUSTER": False} if local else {})
    if missing := [name for name in wanted if not hasattr(constants, name)]:
        raise EngineError(
            "this version of Ray cannot be kept on loopback",
            expected=f"ray._private.ray_constants.{missing[0]}",
            remedy="use local processes, or start a cluster of your own and pass its address",
        )
    before = {name: getattr(constants, name) for name in wanted}
    for name, value in wanted.items():
        setattr(constants, name, value)
    worker: Any = importlib.import_module("ray._private.worker")
    announce = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *args, **kwargs: None  # a paragraph about each lost actor: we say it in a line
    raylet.Config.initialize("")  # reads RAY_AUTH_MODE again
    raylet.AuthenticationTokenLoader.instance().reset_cache()
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(constants, name, value)
        worker.print_to_stdstream = announce


@contextlib.contextmanager
def _temporary(logs: Path | None) -> Iterator[str]:
    """Return a directory with a short name for Ray's sockets and logs, which are kept in `logs` if that is given.

    The names of sockets may have a hundred characters, and those of runs are often longer: a link stands for them.
    """
    remove_left_behind()
    short = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    place = short / "s"
    if logs is None:
        place.mkdir()
    else:
        logs.mkdir(parents=True, exist_ok=True)
        place.symlink_to(logs.resolve())
    try:
        yield str(place)
    finally:
        if logs is not None:
            keep_only_logs(logs)
        shutil.rmtree(short, ignore_errors=True)


PREFIX = "adalook-ray-"


def remove_left_behind() -> None:
    """Remove temporary directories of processes that were killed before they could do so."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = path.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdigit() and not Path("/proc", number).exists() and Path("/proc").exists():
            shutil.rmtree(path, ignore_errors=True)


def keep_only_logs(directory: Path) -> None:
    """Remove what Ray leaves in a directory beside its logs: sockets, ports, empty files and folders."""
    for session in directory.glob("session_*"):
        if session.is_symlink():
            session.unlink()
            continue
        for path in session.iterdir():
            if path.name != "logs":
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        for path in sorted(session.rglob("*"), reverse=True):
            with contextlib.suppress(OSError):
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()
                elif path.is_file() and path.stat().st_size == 0:
                    path.unlink()


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that Ray replaces: training answers SIGTERM with a checkpoint."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
