"""The contract of a system: what a framework's folder must offer, and the layout in which arrays are exchanged.

A framework's folder is a package whose `__init__.py` has two functions:

`describe(job)`
    Imports the framework, sets threads, precision and denormals as the job says, and returns
    `{"versions": {...}, "device": "cpu" or "cuda", "device_name": str, "threads": int or None}`,
    read back from the framework rather than repeated from the job.

`build(job, parameters)`
    Returns a `Program` for the job, its parameters set to the arrays given. The job has no more fields than
    `loading.TOLD`: a system does not know whether it is verified or timed.

A third is optional. With it, the machine's limit is measured in this framework's environment too:

`rates(job)`
    Returns a dict of three functions that use the framework's own operators on the job's device:
    `product(size)` makes two square matrices of random numbers in the job's precision and returns a
    function that multiplies them once; `copy(count)` makes an array of this many 32-bit floats and returns a
    function that reads all of it and writes as much, into memory that is already allocated. Both functions return
    a handle and do not wait; `sync(handle)` waits. They time nothing: `limit.py` does. Or None: not for this job.

Two are about graphs (`rnnbench graph`), and optional:

`graphs(job, make)`
    Returns a list of `graph.Graph`: what this execution really builds for the job's phase, read from the
    framework. `make()` builds the program, feeds it a batch and returns both; it is passed as a function so that
    building can be observed. Where there is no graph, return `[no_graph(reason)]`.

`story(job, parameters, batch)`
    Only where the system offers the single tanh step of Lazarus's slides of 2019 (`one_step` in the manifest):
    returns a `story.Story` of its six statements.

One is about abilities (`rnnbench abilities`), and optional:

`prove(job, ability, arrays)`
    Runs the small program of this ability by the job's execution and returns its arrays (`abilities.py` says which),
    with `built`: how often something was built again for another number of steps, and `note`: what must be known.
    Raises `abilities.Cannot` where the system does not offer it; any other exception is a reason as well.

One tells when something was compiled again; without it a new shape is only timed:

`builds(program)`
    How often the framework has traced, compiled or captured something for this program so far, by a counter of
    its own. The counter may count for the whole process, since only differences are read (`retrace.py`). 0 where
    nothing is ever built; None where something is built but not counted.

One is about classes of users (`rnnbench cell`), and only PyTorch's folder has it:

`inspect_cell(job)`
    What follows from the class that `job["workload"]["own"]` names: its weights with the numbers between which they
    begin, the width of its output, the operations of its products, and in words how it is called.

One tells what a batch consists of; without it the framework's rows have no such counts:

`profiler(job)`
    Called before `build`, so that it can switch on what must be on while a program is built (`build` can also look
    at `job["profile_folder"]`, which is empty where nothing is profiled). Returns a function
    `watch(program, block, folder)` that runs batches by `block()` under the framework's own profiler and returns a
    `timeline.Timeline`: the operations on the host and on the device (`timeline.Operation`, nested as they were), the
    number of batches (`block(batches=profile.BATCHES)`), and the path of a trace in `folder` that Perfetto opens, or
    "". Or a string: why this job has no profiler.

Arrays are NumPy arrays. A batch is a dict with `inputs` ([batch, steps] ids or [batch, steps, features]),
`targets`, and `lengths` where they vary. The batch of the single step has `inputs` [batch, features] and `state`
[batch, hidden]; its parameters are `W_h [H,H]` and `W_x [H,features]`. All other parameters and gradients are dicts
in the canonical layout: `embedding [V,E]`, `layer{l}.{fwd|bwd}.w [in,4H]`, `.u [H,4H]`, `.b [4H]`, `head.w [in,C]`,
`head.b [C]`, with gates in the order i, f, g, o.
"""

#: The optimiser of every training step is Adam as published: `update = rate × m̂ / (√v̂ + epsilon)`, with epsilon added
#: after the bias correction. Where a framework adds it elsewhere, its folder says what is done about that.
LEARNING_RATE = 1e-3
BETA_1, BETA_2 = 0.9, 0.999
EPSILON = 1e-8


class Program(object):
    """One network on one device, ready to run batches."""

    #: Where the parameters really are, "cpu" or "cuda". The driver compares it with what it asked for.
    device = "cpu"

    def stage(self, batch):
        """Prepare a host batch once, outside the clock (convert types, pin memory). It stays in host memory."""
        return batch

    def feed(self, staged):
        """Move a staged batch to the device. Inside the clock."""
        raise NotImplementedError

    def forward(self, fed):
        """Compute the logits without recording anything for gradients; return a handle, do not wait."""
        raise NotImplementedError

    def train(self, fed):
        """Forward pass, loss, backward pass, one Adam update; return a handle of the loss, do not wait."""
        raise NotImplementedError

    def call_of(self, phase):
        """The method that runs a batch of this phase."""
        return self.train if phase == "train" else self.forward

    def sync(self, handle):
        """Wait until everything up to this handle is done on the device."""

    def stopwatch(self):
        """A clock of the device itself, or None. `start()` and `stop()` put marks into the device's queue and do not
        wait; `seconds()`, called after `sync`, is the time between the two marks."""
        return None

    def logits(self, handle):
        """The result of `forward` as an array, [batch, steps, classes] or [batch, classes]."""
        raise NotImplementedError

    def loss(self, handle):
        """The result of `train` as a float."""
        raise NotImplementedError

    def gradients(self, fed):
        """Gradients in the canonical layout, computed in the same way as by `train`; parameters are unchanged."""
        raise NotImplementedError

    def parameters(self):
        """The parameters now, in the canonical layout."""
        raise NotImplementedError

    def parameter_count(self):
        """How many numbers are learnt, counted in the framework's own storage."""
        raise NotImplementedError

    def how_it_ran(self):
        """In words, what the program chose while it ran, where it chooses; known after the first calls."""
        return ""

    def peak_device_bytes(self):
        """The most device memory that the process has used, or None where that is unknown."""
        return None


def built_once(program):
    """`builds` of a program that compiles the function of its phase at the first call, and no other one later."""
    return int(program.function is not None)
