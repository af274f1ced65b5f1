"""Keras on TensorFlow builds TensorFlow's graphs: of the function that `fit` or `predict` calls."""

from rnnbench_worker.systems.tensorflow.graph import function_graphs


def graphs(job, make):
    program, fed = make()
    if job["phase"] == "train":
        return function_graphs(program._model.train_function, ([fed],), xla=False)
    return function_graphs(program._model.predict_function, ([fed[:1]],), xla=False)
