"""What is set once per process: devices, threads, precision; and what TensorFlow says it then has.

Denormals need no setting: TensorFlow's executors flush them by themselves.
"""

import tensorflow as tf

from .compat import allow_tf32, devices


def apply_settings(job):
    """Before any tensor is made: TensorFlow starts its pools and claims its devices then."""
    # One pool runs operators beside each other, the other one works within an operator.
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    if job["device"] == "cuda":
        for gpu in devices.list_physical_devices("GPU"):
            # Reserving most of the device at once would make its peak say nothing.
            tf.config.experimental.set_memory_growth(gpu, True)
    else:
        devices.set_visible_devices([], "GPU")
    # On by default: fp32 would not be fp32.
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
