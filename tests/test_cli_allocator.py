"""The command `garden` runs with large pages; a user's own settings of glibc stay."""

import os
import subprocess
import sys

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


def test_the_program_starts_anew_with_large_pages_where_there_is_glibc():
    assert run() == ("glibc.malloc.hugetlb=1" if sys.platform == "linux" else "None")


def test_the_users_own_tunables_stay():
    assert run(GLIBC_TUNABLES="glibc.malloc.perturb=0") == "glibc.malloc.perturb=0"
