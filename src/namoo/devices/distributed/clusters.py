"""Detects the launcher of this process, and reads its description of the other processes.

Each launcher sets its own environment variables; there is a class for each that reads them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Protocol

# Ports from here on are free for programs. Jobs that share a machine choose by their number.
_FIRST_PORT = 65536 - 4096


class Cluster(Protocol):
    """A launcher's description of a group of processes, read from the environment."""

    name: str

    @staticmethod
    def present(env: Mapping[str, str]) -> bool:
        """Whether this launcher started this process."""
        ...

    @staticmethod
    def coordinator(env: Mapping[str, str]) -> str:
        """Return the address that process 0 listens at."""
        ...

    @staticmethod
    def count(env: Mapping[str, str]) -> int:
        """Return the number of processes."""
        ...

    @staticmethod
    def number(env: Mapping[str, str]) -> int:
        """Return the number of this process."""
        ...

    @staticmethod
    def local_number(env: Mapping[str, str]) -> int:
        """Return the number of this process on its machine."""
        ...


class Launched:
    """Started by `python -m namoo.launch`."""

    name = "namoo"
    ADDRESS = "NAMOO_COORDINATOR_ADDRESS"
    COUNT = "NAMOO_NUM_PROCESSES"
    NUMBER = "NAMOO_PROCESS_ID"
    LOCAL_NUMBER = "NAMOO_LOCAL_PROCESS_ID"

    @staticmethod
    def variables(address: str, count: int, number: int, local: int) -> dict[str, str]:
        """Return the variables that the launcher sets."""
        values = (address, count, number, local)
        names = (Launched.ADDRESS, Launched.COUNT, Launched.NUMBER, Launched.LOCAL_NUMBER)
        return dict(zip(names, map(str, values), strict=True))

    @staticmethod
    def present(env: Mapping[str, str]) -> bool:
        return Launched.ADDRESS in env and Launched.COUNT in env and Launched.NUMBER in env

    @staticmethod
    def coordinator(env: Mapping[str, str]) -> str:
        return env[Launched.ADDRESS]

    @staticmethod
    def count(env: Mapping[str, str]) -> int:
        return int(env[Launched.COUNT])

    @staticmethod
    def number(env: Mapping[str, str]) -> int:
        return int(env[Launched.NUMBER])

    @staticmethod
    def local_number(env: Mapping[str, str]) -> int:
        return int(env.get(Launched.LOCAL_NUMBER, 0))


def _port(job: int) -> int:
    return _FIRST_PORT + job % 4096


def first_host(nodes: str) -> str:
    """Return the first machine of Slurm's node list.

    Example:
        >>> first_host("node001"), first_host("a1,b2"), first_host("gpu[007-015,020],b")
        ('node001', 'a1', 'gpu007')
    """
    first, depth = "", 0
    for letter in nodes:
        if letter == "," and not depth:
            break
        depth += {"[": 1, "]": -1}.get(letter, 0)
        first += letter
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first).strip()


class Slurm:
    """Started by Slurm's `srun`."""

    name = "slurm"
    _NEEDED = (
        "SLURM_JOB_ID",
        "SLURM_STEP_NODELIST",
        "SLURM_NTASKS",
        "SLURM_PROCID",
        "SLURM_LOCALID",
    )

    @staticmethod
    def present(env: Mapping[str, str]) -> bool:
        return all(name in env for name in Slurm._NEEDED)

    @staticmethod
    def coordinator(env: Mapping[str, str]) -> str:
        host = first_host(env["SLURM_STEP_NODELIST"])
        return f"{host}:{_port(int(env['SLURM_JOB_ID']))}"

    @staticmethod
    def count(env: Mapping[str, str]) -> int:
        return int(env["SLURM_NTASKS"])

    @staticmethod
    def number(env: Mapping[str, str]) -> int:
        return int(env["SLURM_PROCID"])

    @staticmethod
    def local_number(env: Mapping[str, str]) -> int:
        return int(env["SLURM_LOCALID"])


class OpenMPI:
    """Started by Open MPI's `mpirun`; process 0 is on the machine of `mpirun`.

    Version 4 gives its addresses, as in `123.0;tcp://10.0.0.1,10.1.0.1:34911`; version 5 has its
    host and process id in the name of the job, as in `prterun-host-4711@1`.
    """

    name = "ompi"
    _ADDRESS = re.compile(r"(\d+)\..*?tcp[46]?://(?:\[([^\],]+)[^\]]*\]|([^,:\[]+))")
    _JOB = re.compile(r"prte\w*-(?P<host>.+)-(?P<number>\d+)@\d+$")

    @staticmethod
    def present(env: Mapping[str, str]) -> bool:
        known = "OMPI_COMM_WORLD_RANK" in env and "OMPI_COMM_WORLD_SIZE" in env
        named = OpenMPI._JOB.match(env.get("PMIX_NAMESPACE", ""))
        return known and ("OMPI_MCA_orte_hnp_uri" in env or named is not None)

    @staticmethod
    def coordinator(env: Mapping[str, str]) -> str:
        if named := OpenMPI._JOB.match(env.get("PMIX_NAMESPACE", "")):
            return f"{named['host']}:{_port(int(named['number']))}"
        uri = env["OMPI_MCA_orte_hnp_uri"]
        found = OpenMPI._ADDRESS.match(uri)
        if found is None:
            raise RuntimeError(
                "distributed.initialize: no address can be read from Open MPI's "
                f"environment variable OMPI_MCA_orte_hnp_uri={uri!r}; give "
                "coordinator_address='host:port'."
            )
        # Its job numbers are multiples of 4096.
        port = _port(int(found[1]) // 4096)
        return f"[{found[2]}]:{port}" if found[2] else f"{found[3]}:{port}"

    @staticmethod
    def count(env: Mapping[str, str]) -> int:
        return int(env["OMPI_COMM_WORLD_SIZE"])

    @staticmethod
    def number(env: Mapping[str, str]) -> int:
        return int(env["OMPI_COMM_WORLD_RANK"])

    @staticmethod
    def local_number(env: Mapping[str, str]) -> int:
        return int(env.get("OMPI_COMM_WORLD_LOCAL_RANK", 0))


# The first match wins: namoo's launcher takes precedence inside of a Slurm job.
CLUSTERS: tuple[type[Cluster], ...] = (Launched, Slurm, OpenMPI)


def detect(method: str | None = None, env: Mapping[str, str] | None = None) -> type[Cluster] | None:
    """Return the launcher of this process; None if it is not known.

    Args:
        method: the launcher to look for: 'namoo', 'slurm' or 'ompi'; any of them by default.
        env: the environment.

    Raises:
        ValueError: there is no such launcher, or it did not start this process.
    """
    env = os.environ if env is None else env
    if method is None:
        return next((each for each in CLUSTERS if each.present(env)), None)
    names = [each.name for each in CLUSTERS]
    if method not in names:
        raise ValueError(
            f"distributed.initialize: cluster_detection_method={method!r} is not one of "
            f"{', '.join(map(repr, names))} and 'deactivate'."
        )
    chosen = CLUSTERS[names.index(method)]
    if not chosen.present(env):
        raise ValueError(
            f"distributed.initialize: cluster_detection_method={method!r}, but this process was "
            "not started in that way: its variables are not in the environment."
        )
    return chosen
