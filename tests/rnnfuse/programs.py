"""Kernels in Triton's interpreter, without a GPU: all programs of a grid at the same time, one segment after the other.

The interpreter runs one program after the other, and the first would wait for others forever. Here each has a thread
of its own, and only one runs at a time: each as far as it can without what others have yet to do. A value that a
program reads before another has made it is wrong, every time.
"""

import inspect
import threading

import triton.language as tl  # the interpreter looks for it here, too
from triton.runtime.interpreter import GridExecutor, interpreter_builder

from rnnfuse import passes
from rnnfuse.persistent.kernel import Kernel, Tile
from rnnfuse.persistent.text import Inexpressible

PATIENCE = 100  # so often a program looks whether the others have done what it waits for


class Program(threading.Thread):
    def __init__(self, function, arguments, place):
        super().__init__(daemon=True)
        self.function, self.arguments, self.place = function, arguments, place
        self.may_go, self.has_stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.ended, self.error = False, None
        self.arrived, self.beside = 0, [self]  # how often at a barrier; those that share sequences

    def run(self):
        self.may_go.acquire()
        try:
            self.function(**self.arguments)
        except BaseException as error:
            self.error = error
        self.ended = True
        self.has_stopped.release()

    def go_on(self):
        interpreter_builder.set_grid_idx(*self.place)
        self.may_go.release()
        self.has_stopped.acquire()
        if self.error:
            raise self.error

    def pause(self):
        self.has_stopped.release()
        self.may_go.acquire()


class Together:
    """A kernel whose programs run at the same time."""

    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        one = self.function.rewrite()
        executor = GridExecutor(one, self.function.arg_names, grid)

        def every(**arguments):
            if tuple(interpreter_builder.grid_idx) != (0, 0, 0):
                return  # it ran with the first
            programs = [Program(one, arguments, (x, y, 0)) for x in range(grid[0]) for y in range(grid[1])]
            for program in programs:
                program.beside = [one for one in programs if one.place[0] == program.place[0]]
                program.start()
            while not all(program.ended for program in programs):
                for program in programs:
                    if not program.ended:
                        program.go_on()

        every.__signature__ = inspect.signature(one)
        executor.fn = every
        return executor


def wait_for_all(counter):
    """Where a program arrives, not where it waits: what it stores in between comes too late for others."""
    program = threading.current_thread()
    program.arrived += 1
    program.pause()
    pause_until(lambda: all(one.arrived >= program.arrived or one.ended for one in program.beside))


def pause_until(is_done):
    for _ in range(PATIENCE):
        if is_done():
            return
        threading.current_thread().pause()
    raise AssertionError("no other program does what this one waits for")


def tell(address, number, tag, mask):
    bits = number.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    tl.store(address, (tag.to(tl.int64) << 32) | bits, mask=mask)


def told(*given):
    *addresses, tag, _ = given
    pause_until(lambda: all(is_told((tl.load(one) >> 32).to(tl.int32), tag) for one in addresses))
    numbers = [tl.load(one).to(tl.int32).to(tl.float32, bitcast=True) for one in addresses]
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def is_told(tags, tag):
    return bool((tags == tag).handle.data.all())


def nearest(x, once):
    more = tl.minimum(x.to(tl.int32, bitcast=True) + 0x1000, 0x7F7FFFFF).to(tl.uint32, bitcast=True)
    return (tl.minimum(more, 0xFF7FFFFF) & 0xFFFFE000).to(tl.float32, bitcast=True)


#: What kernels have in assembler, which the interpreter does not know.
WITHOUT_ASSEMBLER = {"plus": lambda x, y: x + y, "nearest": nearest, "held": lambda side: side, "tell": tell}
WITHOUT_ASSEMBLER |= {f"told{count}": told for count in range(1, 33)}


class Kernels:
    """Runs loops as kernels wherever they can be, and remembers them and why others cannot."""

    def __init__(self, monkeypatch, tile=None, barrier=wait_for_all):
        self.tile, self.barrier = tile or Tile(16, 16, 4, "ieee"), barrier
        self.made, self.refused = {}, {}
        monkeypatch.setattr(passes, "run_range", self.run_range)

    def run_range(self, loop, start, stop):
        kernel = self.kernel_of(loop)
        if kernel is None:
            loop.run(start, stop)
            return
        middle = (start + stop) // 2  # in two launches: what is handed on goes through memory
        ranges = [(start, middle), (middle, stop)] if start < middle else [(start, stop)]
        for first, end in reversed(ranges) if loop.form.from_the_end else ranges:
            kernel.run(loop, first, end, self.tile)

    def kernel_of(self, loop):
        form = loop.form
        if form not in self.made and form not in self.refused:
            try:
                kernel = Kernel(loop.buffers.plan, form)
            except Inexpressible as error:
                self.refused[form] = str(error)
                return None
            how = self.tile.warps, self.tile.units, kernel.coming(self.tile)
            writer, function = kernel._written(*how)
            function.fn.__globals__.update(arrive=self.barrier, wait=lambda counter, target: None, **WITHOUT_ASSEMBLER)
            kernel._writers[how] = writer, Together(function)
            self.made[form] = kernel
        return self.made.get(form)

    @property
    def barriers(self):
        return [kernel.barriers for kernel in self.made.values()]

    @property
    def exchanges(self):
        return [kernel.exchanges for kernel in self.made.values()]
