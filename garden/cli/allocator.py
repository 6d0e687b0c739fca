"""Has glibc ask the kernel for large pages."""

import os
import sys

_VARIABLE = "GLIBC_TUNABLES"


def use_large_pages() -> None:
    """Starts this process's program anew with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, on Linux, unless it is set.

    A training step allocates hundreds of megabytes and gives them back, and the kernel maps and zeroes every page of
    4 KB anew in the next step: 100,000 of them in a MiniLM step on JAX, a fifth of its time on two cores. With pages of
    2 MB it is 600. glibc reads the setting only when a program starts. Keeping the memory as well (one arena, no mmap,
    no trimming) was a little faster still, but halved the tokenizer's speed, whose threads then wait for one lock.
    """
    if sys.platform != "linux" or _VARIABLE in os.environ:
        return
    os.environ[_VARIABLE] = "glibc.malloc.hugetlb=1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
