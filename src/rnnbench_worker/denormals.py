"""Flushing denormal numbers to zero, for frameworks that have no setting of their own for it.

Vanishing gradients end as denormal numbers, which many processors handle very slowly.
"""

import ctypes
import platform

#: By architecture: the words of glibc's `fenv_t`, which of them is the control register, and the bits to set there.
#: x86-64 has MXCSR, where denormal results and denormal operands have a bit each. ARM has FPCR, where one does both.
CONTROL_REGISTERS = {"x86_64": (8, 7, 1 << 15 | 1 << 6), "aarch64": (2, 0, 1 << 24)}


def flush_denormals():
    """For this thread and those it starts from now on. Without glibc, or on another architecture, nothing is done."""
    if platform.machine() not in CONTROL_REGISTERS or platform.libc_ver()[0] != "glibc":
        return
    words, register, bits = CONTROL_REGISTERS[platform.machine()]
    library = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * words)()
    library.fegetenv(environment)
    environment[register] |= bits
    library.fesetenv(environment)
