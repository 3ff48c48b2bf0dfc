from namoo.train.accumulation import accumulate as accumulate
from namoo.train.early_stopping import EarlyStopping as EarlyStopping
from namoo.train.ema import EMA as EMA
from namoo.train.evaluation import evaluate as evaluate
from namoo.train.events import EventWriter as EventWriter
from namoo.train.events import read_events as read_events
from namoo.train.logger import Logger as Logger
from namoo.train.metrics import AUC as AUC
from namoo.train.metrics import F1 as F1
from namoo.train.metrics import Accuracy as Accuracy
from namoo.train.metrics import Confusion as Confusion
from namoo.train.metrics import Mean as Mean
from namoo.train.metrics import Metric as Metric
from namoo.train.metrics import Perplexity as Perplexity
from namoo.train.metrics import TopK as TopK
from namoo.train.metrics import compute as compute
from namoo.train.metrics import merge as merge
from namoo.train.periodic import every as every
from namoo.train.plots import plot as plot
from namoo.train.progress import progress as progress
from namoo.train.report import Timings as Timings
from namoo.train.report import report as report
from namoo.train.state import TrainState as TrainState

_TABLE: dict[str, str]
