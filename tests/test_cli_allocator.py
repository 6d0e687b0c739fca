"""The command `garden` runs with large pages; a user's own settings of glibc stay."""

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
def test_the_program_starts_anew_with_large_pages():
    assert run() == "glibc.malloc.hugetlb=1"


def test_the_users_own_tunables_stay():
    assert run(GLIBC_TUNABLES="glibc.malloc.perturb=0") == "glibc.malloc.perturb=0"
