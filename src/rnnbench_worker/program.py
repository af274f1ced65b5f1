"""The contract of a system: what a framework's folder must offer, and in which layout it is exchanged.

A framework's folder is a package whose `__init__.py` has two functions:

`describe(job)`
    Imports the framework, sets threads, precision and denormals as the job says, and returns
    `{"versions": {...}, "device": "cpu" or "cuda", "device_name": str, "threads": int or None}`,
    read back from the framework rather than repeated from the job.

`build(job, parameters)`
    Returns a `Program` for the job, its parameters set to the arrays given.

It may have a third, from which the machine's limit is measured; without it the framework is left out of that:

`rates(job)`
    Returns a dict of three functions made of the framework's own operators, on the job's device:
    `product(size)` makes two square matrices of random numbers in the job's precision and returns a
    function that multiplies them once; `copy(count)` makes an array of so many 32-bit floats and returns a
    function that reads it all and writes as much, into memory it has already; both return a handle and do
    not wait. `sync(handle)` waits. Nothing is timed there: `limit.py` does that. None: not for this job.

Two are about graphs (`rnnbench graph`); without them the framework is left out of that:

`graphs(job, make)`
    Returns a list of `graph.Graph`: what this execution really builds for the job's phase, read from the
    framework. `make()` builds the program and feeds it a batch, and returns both; it is given as a function so
    that something can be watched meanwhile. Where there is no graph, `no_graph(reason)`.

`story(job, parameters, batch)`
    Only where the system offers seed 003's single step (`one_step` in the manifest): returns a
    `graph_story.Story` of its six statements.

And one that says when something was compiled again; without it a new shape is only timed:

`builds(program)`
    How often the framework has built something for this program until now: traced, compiled, captured, by
    a counter of its own. The counter may be the process's; only differences are read (`retrace.py`). 0 where
    nothing is ever built; None where something is, but nobody counts it.

And one that says what a batch is made of; without it the framework's rows have no such counts:

`profiler(job)`
    Called before `build`, so that it can switch on what must be on when a program is built (which also
    sees `job["mode"]`, here "profile"). Returns a function `watch(program, block, folder)` that runs
    batches by `block()` under the framework's own profiler and returns a `timeline.Timeline`: operations of
    the host and of the device (`timeline.Operation`, nested as they were), how many batches they are of
    (`block(batches=profile.BATCHES)`), and the path of a trace written into `folder` that Perfetto opens,
    or "". Or a string: why there is no profiler for this job.

Arrays are NumPy's. A batch is a dict with `inputs` ([batch, steps] ids or [batch, steps, features]),
`targets`, and `lengths` where they vary; that of the single step has `inputs` [batch, features] and `state`
[batch, hidden], its parameters are `W_h [H,H]` and `W_x [H,features]`. All other parameters and gradients
are dicts in the canonical layout:
`embedding [V,E]`, `layer{l}.{fwd|bwd}.w [in,4H]`, `.u [H,4H]`, `.b [4H]`, `head.w [in,C]`, `head.b [C]`,
gates in the order i, f, g, o.
"""


class Program(object):
    """One network on one device, ready to run batches."""

    #: Where the parameters really are: "cpu" or "cuda". Checked against what was asked for.
    device = "cpu"

    def stage(self, batch):
        """Prepare a host batch once, outside the clock (convert types, pin memory). Still host memory."""
        return batch

    def feed(self, staged):
        """Move a staged batch to the device. Inside the clock."""
        raise NotImplementedError

    def forward(self, fed):
        """Compute the logits, recording nothing for gradients; return a handle, do not wait."""
        raise NotImplementedError

    def train(self, fed):
        """Forward, loss, backward, one Adam update; return a handle of the loss, do not wait."""
        raise NotImplementedError

    def call_of(self, phase):
        """What a batch of a phase calls."""
        return self.train if phase == "train" else self.forward

    def sync(self, handle):
        """Wait until everything up to this handle is done on the device."""

    def stopwatch(self):
        """A clock of the device itself, or None: `start()` and `stop()` mark a place in the queue of its work
        and do not wait, `seconds()` is the time between the two, asked for after `sync`."""
        return None

    def logits(self, handle):
        """The result of `forward` as an array, [batch, steps, classes] or [batch, classes]."""
        raise NotImplementedError

    def loss(self, handle):
        """The result of `train` as a float."""
        raise NotImplementedError

    def gradients(self, fed):
        """Gradients in the canonical layout, by the same path as `train`; parameters stay as they are."""
        raise NotImplementedError

    def parameters(self):
        """The parameters now, in the canonical layout."""
        raise NotImplementedError

    def parameter_count(self):
        """Numbers to be learnt, counted in the framework's own storage."""
        raise NotImplementedError

    def peak_device_bytes(self):
        """Most device memory the process has had in use, or None where there is no such number."""
        return None


def built_once(program):
    """`builds` of programs that make one function, their phase's, at its first call: no shape makes another."""
    return int(program.function is not None)
