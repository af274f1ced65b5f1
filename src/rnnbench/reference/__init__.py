"""What every system must compute: data, LSTM, losses and Adam in float64 NumPy, with no framework."""
