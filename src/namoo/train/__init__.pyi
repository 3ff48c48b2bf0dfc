from namoo.train.state import TrainState as TrainState
