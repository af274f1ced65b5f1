"""How often XLA has compiled in this process, by JAX's own events.

Not `_cache_size` of the jitted step: without `jit`, JAX still compiles every operator by itself, once per shape.
"""

from jax import monitoring

_COMPILED = "/jax/core/compile/backend_compile_duration"
_count = [0]


def _hear(event, seconds, **details):
    if event == _COMPILED:
        _count[0] += 1


monitoring.register_event_duration_secs_listener(_hear)


def builds(program):
    return _count[0]
