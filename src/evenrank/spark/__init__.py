"""Collections and runs on a cluster: the same kernel and the same measures, in the workers of Spark."""

from evenrank.spark.measuring import measure_frames
from evenrank.spark.tallying import TallyBatches, tally_batches, tally_frame, tally_schema

__all__ = ["TallyBatches", "measure_frames", "tally_batches", "tally_frame", "tally_schema"]
