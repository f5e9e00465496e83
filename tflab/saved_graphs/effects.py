"""Effects: what a node may affect other than its tensors.

A list of harmful ops is never complete, so tflab does the opposite: a node is harmless only if the
definition of its type says so, or if the type was reviewed: the tables list types that do more than
their definitions say, or less. Each entry results from reading what the op does, not from its name.
Every other node has an effect, possibly an unknown one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tflab.records.options import CONNECTS, READS, WRITES

# Effect -> pattern of the op types that have it; they need permission
GATED = {
    READS: r"ReadFile|.*MatchingFiles(Dataset)?|Restore(V2|Slice)?|DTensorRestoreV2"
    r"|.*Reader(V2)?|Reader(Read|Reset|Num|Restore|Serialize)\w*|RecordInput|ImmutableConst"
    r"|TextLineDataset|TFRecordDataset(V2)?|FixedLengthRecordDataset(V2)?|LoadDataset|ImportEvent"
    r"|.*(CSV|LMDB|Sql)Dataset(V2)?|InitializeTableFromTextFile(V2)?|GenerateVocabRemapping"
    r"|LoadAndRemapMatrix|Skipgram|FixedUnigramCandidateSampler|SnapshotChunkDataset"
    r"|ListSnapshotChunksDataset|(De|En)codeProto(V2)?|Unicode(Decode\w*|Transcode)",
    WRITES: r"WriteFile|Save(V2|Slices)?|MergeV2Checkpoints|SaveDataset(V2)?"
    r"|DistributedSave|.*DatasetToTFRecord|\w*Summary(File|Db)?Writer|Write\w*Summary|CacheDataset(V2)?"
    r"|Snapshot(Nested)?Dataset(V2|Reader)?|Debug(Identity(V\d)?|NanCount|NumericSummary)"
    r"|Copy(Host)?|DumpTensor|CalibrationStatisticsSaver|PrintV2",
    "calls Python": r"(Eager)?PyFunc(Stateless)?",
    CONNECTS: r"_?(Host)?(Send|Recv)|DataService\w+|RegisterDataset(V2)?"
    r"|_?Collective\w+|_?Nccl\w+|AllToAll|CrossReplicaSum|_?Xla(Send|Recv)\w*|Rpc\w+|RemoteCall"
    r"|DeleteRpcFutureResource|FileSystemSetConfiguration|CopyToMesh(Grad)?|Relayout(Like)?"
    r"|DTensor(All|Reduce|Set)\w+|SyncDevice",
    "runs a program that is not in the graph": r"XlaCallModule|XlaCustomCall(V2)?|MlirPassthroughOp"
    r"|_Xla(Compile|Run)|_?XlaHostCompute(Mlir)?|DatasetFromGraph|DeserializeIterator|_TPUCompile.*"
    r"|_XlaCompileMlir\w+",
    "ends the process": r"Abort|WorkerHeartbeat",
    "controls an accelerator": r".*TPU.*|.*Tpu.*|Infeed\w+|Outfeed\w+|Prelinearize\w*|XlaSparse\w+"
    r"|.*SparseCore\w*|.*DedupData\w*|ConvertToCooTensor|GetMinibatch\w+|GlobalIterId"
    r"|StoreMinibatchStatisticsInFdo|UpdateTaskIdAndGlobalCoreArray|_Xla(AotOnly)\w+|XlaDequantize",
    "is for TensorFlow's own tests": r"Foo\d|TestAttr|Attr(Default|Enum|EnumList)"
    r"|DefaultAttrs|NInTwice|StringListAttr|Resource(Create|Initialized|Using)Op|StubResourceHandleOp"
    r"|GraphDefVersion|RequiresOlderGraphVersion|DevicePlacementOp|DtypeWithDefaultOp|FakeQueue"
    r"|IsResourceHandleRefCounting|MakeWeakResourceHandle",
}

# Gated types that are harmless if an attribute matches this pattern
HARMLESS_VALUES = {
    "DecodeProtoV2": ("descriptor_source", r"(local://|bytes://.*)?"),  # else a file's name
    "EncodeProto": ("descriptor_source", r"(local://|bytes://.*)?"),
    "FixedUnigramCandidateSampler": ("vocab_file", ""),
    "PrintV2": ("output_stream", r"stderr|log\(\w+\)"),  # otherwise standard output or a file
    # Other names may make ICU search files for the table of an encoding
    "UnicodeDecode": ("input_encoding", r"[\w.:-]*"),
    "UnicodeDecodeWithOffsets": ("input_encoding", r"[\w.:-]*"),
    "UnicodeTranscode": ("input_encoding", r"[\w.:-]*"),
}

# Gated types that stay in memory if this input is an empty constant
HARMLESS_EMPTY = {"CacheDataset": "filename", "CacheDatasetV2": "filename"}

# Types that only read the file that this input names. They are harmless if tflab feeds the path,
# which is that of the checkpoint or of an asset of the graph.
READERS = {
    "RestoreV2": "prefix",
    "Restore": "file_pattern",
    "RestoreSlice": "file_pattern",
    "InitializeTableFromTextFile": "filename",
    "InitializeTableFromTextFileV2": "filename",
    "ReadFile": "filename",
}

# String attributes that only say how to read tensors
PLAIN_ATTRIBUTES = (
    *("activation_mode", "bad_indices_policy", "container", "data_format", "deterministic"),
    *("dimension_numbers", "encoding", "equation", "fill_mode", "frame_name", "fused_ops"),
    *("interpolation", "kernel_type", "metadata", "padding", "precision_config", "separator"),
    *("set_operation", "shared_name"),
)

# Why they are harmless -> types that are stateful or take strings, but affect only tensors
REVIEWED = {
    "variables": """
        AssignAddVariableOp AssignSubVariableOp AssignVariableOp AssignVariableXlaConcatND DeepCopy
        DestroyResourceOp DestroyTemporaryVariable DisableCopyOnRead Empty ReadVariableOp
        ReadVariableXlaSplitND ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad
        ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam
        ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp
        ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent
        ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign
        ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
        ResourceCountUpTo ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterDiv
        ResourceScatterMax ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd
        ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate
        ResourceScatterSub ResourceScatterUpdate ResourceSparseApplyAdadelta
        ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2
        ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
        ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum
        ResourceSparseApplyProximalAdagrad ResourceSparseApplyProximalGradientDescent
        ResourceSparseApplyRMSProp ResourceStridedSliceAssign TemporaryVariable VarHandleOp
        VarIsInitializedOp Variable VariableShape VariableV2 _ReadVariablesOp _VarHandlesOp""",
    "random numbers, whose generator has a state": """
        AllCandidateSampler AnonymousRandomSeedGenerator AnonymousSeedGenerator
        DeleteRandomSeedGenerator DeleteSeedGenerator DummySeedGenerator
        LearnedUnigramCandidateSampler LogUniformCandidateSampler Multinomial NonDeterministicInts
        ParameterizedTruncatedNormal RandomCrop RandomGamma RandomPoisson RandomPoissonV2
        RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt RngReadAndSkip RngSkip
        SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 StatefulRandomBinomial
        StatefulStandardNormal StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform
        StatefulUniformFullInt StatefulUniformInt StatelessRandomGetAlg
        ThreadUnsafeUnigramCandidateSampler TruncatedNormal UniformCandidateSampler""",
    "queues, stacks, lists and accumulators in memory": """
        AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep
        AccumulatorTakeGradient AddManySparseToTensorsMap AddSparseToTensorsMap Barrier BarrierClose
        BarrierIncompleteSize BarrierInsertMany BarrierReadySize BarrierTakeMany
        ConditionalAccumulator ConsumeMutexLock FIFOQueue FIFOQueueV2 MapClear MapIncompleteSize
        MapPeek MapSize MapStage MapUnstage MapUnstageNoKey MutexLock MutexV2 OrderedMapClear
        OrderedMapIncompleteSize OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage
        OrderedMapUnstageNoKey PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue PriorityQueueV2
        QueueClose QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo
        QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue QueueEnqueueMany QueueEnqueueManyV2
        QueueEnqueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2 RandomShuffleQueue
        RandomShuffleQueueV2 ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated
        ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient
        ResourceConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient
        SparseConditionalAccumulator Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush
        StackPushV2 StackV2 Stage StageClear StagePeek StageSize TakeManySparseFromTensorsMap
        TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat
        TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2
        TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3
        TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3
        TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySize
        TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit TensorArraySplitV2 TensorArraySplitV3
        TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite TensorArrayWriteV2
        TensorArrayWriteV3 Unstage Batch""",
    "tables in memory": """
        AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable
        AnonymousMutableHashTableOfTensors HashTable HashTableV2 InitializeTable
        InitializeTableFromDataset InitializeTableV2 LookupTableExport LookupTableExportV2
        LookupTableFind LookupTableFindV2 LookupTableImport LookupTableImportV2 LookupTableInsert
        LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize LookupTableSizeV2
        MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors
        MutableHashTableOfTensorsV2 MutableHashTableV2""",
    "data sets of tensors, and iterators over any data set": """
        AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMemoryCache
        AnonymousMultiDeviceIterator AnonymousMultiDeviceIteratorV3 AssertNextDataset
        AssertPrevDataset BytesProducedStatsDataset DatasetCardinality DatasetToGraph
        DatasetToSingleElement DeleteIterator DeleteMemoryCache DeleteMultiDeviceIterator
        DummyIterationCounter DummyMemoryCache ExperimentalAssertNextDataset
        ExperimentalBytesProducedStatsDataset ExperimentalGroupByReducerDataset
        ExperimentalIteratorGetDevice ExperimentalLatencyStatsDataset
        ExperimentalParseExampleDataset ExperimentalRandomDataset
        ExperimentalSetStatsAggregatorDataset ExperimentalStatsAggregatorHandle
        ExperimentalStatsAggregatorSummary ExperimentalThreadPoolDataset
        ExperimentalThreadPoolHandle GeneratorDataset GlobalShuffleDataset GroupByReducerDataset
        Iterator IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetDevice
        IteratorGetModelProto IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync
        IteratorToStringHandle IteratorV2 LatencyStatsDataset ListDataset MakeIterator
        MultiDeviceIterator MultiDeviceIteratorFromStringHandle MultiDeviceIteratorGetNextFromShard
        MultiDeviceIteratorInit MultiDeviceIteratorToStringHandle OneShotIterator OptimizeDataset
        OptimizeDatasetV2 OptionsDataset ParseExampleDataset ParseExampleDatasetV2 RandomDataset
        RandomDatasetV2 RangeDataset ReduceDataset RewriteDataset SerializeIterator
        SetStatsAggregatorDataset ShuffleAndRepeatDatasetV2 ShuffleDatasetV2 ShuffleDatasetV3
        SparseTensorSliceDataset StatsAggregatorHandle StatsAggregatorHandleV2
        StatsAggregatorSummary TensorDataset TensorSliceDataset
        ThreadPoolDataset ThreadPoolHandle""",
    "control flow: the functions that they call are checked separately": """
        BatchFunction Case If PartitionedCall RiscWhile StatefulPartitionedCall
        While XlaIf XlaLaunch XlaWhile _If _While""",
    "trees and other models in memory": """
        BoostedTreesCalculateBestFeatureSplitV2 BoostedTreesCenterBias BoostedTreesCreateEnsemble
        BoostedTreesCreateQuantileStreamResource BoostedTreesDeserializeEnsemble
        BoostedTreesEnsembleResourceHandleOp BoostedTreesExampleDebugOutputs
        BoostedTreesFlushQuantileSummaries BoostedTreesGetEnsembleStates BoostedTreesPredict
        BoostedTreesQuantileStreamResourceAddSummaries BoostedTreesQuantileStreamResourceDeserialize
        BoostedTreesQuantileStreamResourceFlush
        BoostedTreesQuantileStreamResourceGetBucketBoundaries
        BoostedTreesQuantileStreamResourceHandleOp BoostedTreesSerializeEnsemble
        BoostedTreesTrainingPredict BoostedTreesUpdateEnsemble BoostedTreesUpdateEnsembleV2
        CudnnRNN CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3 CudnnRNNV2 CudnnRNNV3
        CustomAggregator IsBoostedTreesEnsembleInitialized
        IsBoostedTreesQuantileStreamResourceInitialized NegTrain""",
    "checks, clocks and the state of the process": """
        Assert CheckNumerics CheckNumericsV2 DeleteSessionTensor DeviceIndex GetSessionHandle
        GetSessionHandleV2 GetSessionTensor GuaranteeConst IsTensorFloat32Enabled PreventGradient
        Print SleepIdentityOp SleepOp Timestamp""",
    "the runtime's own": """
        _Arg _DeviceArg _DeviceRetval _ParallelConcatStart _Retval _ScopedAllocator
        _ScopedAllocatorConcat _ScopedAllocatorSplit _UnaryOpsComposition""",
    "string functions, which do not name files": """
        AsString DecodeBase64 DecodeCSV DecodeCompressed DecodeJSONExample DecodePaddedRaw DecodeRaw
        DeserializeManySparse EncodeBase64 Fingerprint ParseExample ParseExampleV2
        ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample
        ParseTensor RaggedCross ReduceJoin RegexFullMatch RegexReplace SdcaFprint ShardedFilename
        ShardedFilespec SparseCrossV2 StaticRegexFullMatch StaticRegexReplace StringFormat
        StringJoin StringLength StringLower StringNGrams StringSplit StringSplitV2 StringStrip
        StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber
        StringUpper Substr UnsortedSegmentJoin""",
    "images and sounds in a string": """
        DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodeJxl DecodePng DecodeWav
        DecodeWebP EncodeJpeg ExtractJpegShape""",
    "summaries, which are strings": """
        AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary
        TensorSummary TensorSummaryV2""",
    "arithmetic, with strings that choose a formula": """
        DataFormatDimMap DataFormatVecPermute ExtractGlimpse ExtractGlimpseV2 RaggedTensorToTensor
        XlaSharding XlaSpmdFullToShardShape XlaSpmdShardToFullShape""",
}
STRING = 7  # DT_STRING in tensorflow/core/framework/types.proto
HARMLESS = frozenset(" ".join(REVIEWED.values()).split())
PATTERNS = {what: re.compile(pattern) for what, pattern in GATED.items()}


@dataclass(frozen=True)
class Effect:
    node: str
    op: str
    what: str


def of_type(op: str, op_def: Any) -> str | None:
    """The possible effect of a node of this type, as the end of a sentence; None if it is harmless.

    `op_def` is the OpDef of the type, None for a type that TensorFlow does not know.
    """
    for effect, pattern in PATTERNS.items():
        if pattern.fullmatch(op):
            return effect
    if op in HARMLESS:
        return None
    if op_def is None:
        return "has an op that TensorFlow does not know"
    return by_definition(op_def)


def by_definition(op_def: Any) -> str | None:
    """The possible effect according to the definition of a type. None if it is harmless: not
    stateful, and without a string input that could be the name of a file or an address."""
    if op_def.is_stateful:
        return "is stateful"
    for argument in op_def.input_arg:
        if argument.type == STRING:
            return f"takes the string '{argument.name}'"
    for attribute in op_def.attr:
        listed = attribute.allowed_values.list.s  # its value is one of these words
        plain = listed or attribute.name in PLAIN_ATTRIBUTES
        if attribute.type in ("string", "list(string)") and not plain:
            return f"takes the string attribute '{attribute.name}'"
    return None


def of_node(
    node_def: Any,
    op_def: Any,
    is_empty: Callable[[str], bool],
    is_given: Callable[[str], bool],
) -> str | None:
    """The effect of this node; None if it is harmless, possibly because of its attributes or
    inputs.

    `is_empty` says whether an input is a constant empty string, `is_given` whether it is a path
    that tflab itself feeds.
    """
    effect = of_type(node_def.op, op_def)
    if effect is None:
        return None
    if node_def.op in HARMLESS_VALUES:
        name, pattern = HARMLESS_VALUES[node_def.op]
        if re.fullmatch(pattern, text_of(node_def, op_def, name), re.DOTALL):
            return None
    empty = input_of(node_def, op_def, HARMLESS_EMPTY.get(node_def.op))
    given = input_of(node_def, op_def, READERS.get(node_def.op))
    if (empty and is_empty(empty)) or (given and is_given(given)):
        return None
    return effect


def text_of(node_def: Any, op_def: Any, name: str) -> str:
    """An attribute of a node; by default that of its type."""
    if name in node_def.attr:
        return node_def.attr[name].s.decode(errors="replace")
    defaults = [attr.default_value.s for attr in op_def.attr if attr.name == name] if op_def else []
    return b"".join(defaults).decode(errors="replace")


def input_of(node_def: Any, op_def: Any, argument: str | None) -> str | None:
    """The tensor for this argument. None if it has none or several, or if the number of tensors
    before it is unknown."""
    place = 0
    for arg in op_def.input_arg if op_def else ():
        several = arg.number_attr or arg.type_list_attr
        if arg.name == argument:
            inputs = [tensor for tensor in node_def.input if tensor[:1] != "^"]
            return inputs[place] if not several and place < len(inputs) else None
        if several and several not in node_def.attr:
            return None
        value = node_def.attr[several] if several else None
        place += 1 if value is None else value.i if arg.number_attr else len(value.list.type)
    return None


def effects_text(effects: Iterable[Effect]) -> str:
    """`load/ReadFile (ReadFile) reads files; ...`"""
    return "; ".join(f"{effect.node} ({effect.op}) {effect.what}" for effect in effects)
