"""The command `garden` runs with glibc's tunables set; a user's own stay."""

import os
import subprocess
import sys

import pytest

PROGRAM = (
    "import os, sys, garden.cli\n"
    "sys.argv[1:] = ['--version']\n"
    "garden.cli.main()\n"
    "print(os.environ.get('GLIBC_TUNABLES'), os.getpid())"
)


def run(**environment):
    clean = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=clean | environment
    )
    _, tunables, pid = process.communicate()[0].split()
    assert process.returncode == 0 and int(pid) == process.pid
    return tunables


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_the_program_starts_anew_with_the_tunables():
    assert "glibc.malloc.hugetlb=1" in run()


def test_the_users_own_tunables_stay():
    assert run(GLIBC_TUNABLES="glibc.malloc.perturb=0") == "glibc.malloc.perturb=0"
