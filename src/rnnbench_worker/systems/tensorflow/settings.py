"""TensorFlow's devices, threads and precision: what is set once per process, what it then reports, how fast it is.

What older versions of TensorFlow 2 name differently is here, too; what they lack is declared in the manifest.
Denormals need no setting: TensorFlow's executors flush them to zero themselves.
"""

import tensorflow as tf

GPU = "/GPU:0"

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])

#: The module with the functions about devices, which were experimental before 2.1.
devices = tf.config if VERSION >= (2, 1) else tf.config.experimental


def allow_tf32(wanted):
    """TF32 came in 2.4; before, fp32 is always fp32."""
    if VERSION >= (2, 4):
        tf.config.experimental.enable_tensor_float_32_execution(wanted)


def apply_settings(job):
    """To be called before any tensor is made: TensorFlow then starts its pools and claims its devices."""
    # One pool runs operators in parallel, the other one works within an operator.
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    if job["device"] == "cuda":
        for gpu in devices.list_physical_devices("GPU"):
            # If most of the device's memory were reserved at once, its peak would be meaningless.
            tf.config.experimental.set_memory_growth(gpu, True)
    else:
        devices.set_visible_devices([], "GPU")
    # TF32 is on by default, so that fp32 would not be fp32.
    allow_tf32(job["precision"] == "tf32")


def describe_device(job):
    versions = {"tensorflow": tf.__version__}
    name = ""
    if job["device"] == "cuda":
        gpus = devices.list_physical_devices("GPU")
        if not gpus:
            raise RuntimeError("TensorFlow {} sees no CUDA device".format(tf.__version__))
        name = tf.config.experimental.get_device_details(gpus[0]).get("device_name", "")
        build = tf.sysconfig.get_build_info()
        versions["cuda"] = str(build.get("cuda_version", ""))
        versions["cudnn"] = str(build.get("cudnn_version", ""))
    return {
        "versions": versions,
        "device": job["device"],
        "device_name": name,
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
    }


def device_string(job):
    """The job's device as TensorFlow names it."""
    return GPU if job["device"] == "cuda" else "/CPU:0"


def device_of(variable):
    """Where a variable really is, as a job names it: where there is no GPU, TensorFlow silently takes the CPU."""
    return "cuda" if "GPU" in variable.device.upper() else "cpu"


def wait_for_device(device):
    """On a CPU a call returns when it is finished; a GPU has to be waited for."""
    if device == GPU:
        tf.test.experimental.sync_devices()


def peak_bytes(device):
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] if device == GPU else None


def product_for(precision):
    """The product of activations and weights: fp32 and tf32 are settings of the process, bf16 is cast here."""
    return bf16_product if precision == "bf16" else tf.matmul


def bf16_product(x, w):
    """Operands in bf16, everything else in fp32. Cast at every step, so that gradients are summed in fp32."""
    return tf.cast(tf.matmul(tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16)), tf.float32)


def rates(job):
    """TensorFlow's fastest product and copy, for the machine's limit."""
    device = device_string(job)
    precision = tf.bfloat16 if job["precision"] == "bf16" else tf.float32  # TF32 is a setting of the process

    def product(size):
        with tf.device(device):
            left, right = [tf.cast(tf.random.uniform([size, size]), precision) for _ in range(2)]
        return lambda: tf.matmul(left, right)

    def copy(count):
        with tf.device(device):
            source = tf.random.uniform([count])
        # Negated, because a plain assignment or identity shares the memory and copies nothing.
        return lambda: tf.negative(source)

    return {"product": product, "copy": copy, "sync": lambda handle: wait_for_device(device)}
