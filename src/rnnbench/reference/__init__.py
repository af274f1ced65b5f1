"""What every system must compute: inputs, LSTM, losses and Adam in float64 NumPy, without a framework."""
