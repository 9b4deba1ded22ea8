// What the server of the page sends: JobReport of cli/jobs/report.py, Explanation of diagnosis/facts.py, as JSON. Times are
// RFC 3339. And what the page keeps of a job.

interface ScaleReport {
  before: number;
  after: number;
  at: string;
}

interface Draining {
  since: string;
  until: string | null;
}

interface QueueReport {
  name: string;
  workload: string;
  place: number | null;
  says: string;
}

interface WorkerReport {
  index: number;
  name: string;
  phase: string;
  ready: boolean;
  published: boolean;
  host: string;
  incarnation: number;
  draining: Draining | null;
  node: string;
  created: string | null;
  readySince: string | null;
  lastState: string;
  quota: string;
}

interface LauncherReport {
  name: string;
  phase: string;
  seesDiscoverHosts: boolean;
  refreshed: boolean | null;
  node: string;
  created: string | null;
}

interface JobReport {
  namespace: string;
  name: string;
  state: string;
  phase: string;
  desired: number | null;
  ready: number;
  published: number;
  draining: number;
  elastic: boolean;
  foreign: string;
  slots: number;
  minReplicas: number | null;
  maxReplicas: number | null;
  drainTimeout: number;
  created: string;
  lastScale: ScaleReport | null;
  hosts: string[];
  reminder: string;
  execNames: string[] | null;
  launcher: LauncherReport | null;
  workers: WorkerReport[];
  notices: string[];
  next: string[];
  nextLook: string | null;
  queue: QueueReport | null;
  parked: number[];
  gpus: number;
  gpusHeld: number;
  slices: Record<string, number>;
  slicesHeld: Record<string, number>;
  priority: string;
  ended: string | null;
  needsRestart: boolean;
  context: string;
  progress: ProgressReport | null;
  goodput: GoodputReport | null;
  maxNpWorkers: number | null;
}

interface Finding {
  cause: string;
  says: string;
  nextStep: string;
  level: string;
}

interface Explanation {
  job: Finding[];
  workers: { name: string; cause: Finding }[];
}

interface ProgressReport {
  step: number;
  total: number | null;
  percent: number | null;
  stepsPerSecond: number | null;
  samplesPerSecond: number | null;
  secondsLeft: number | null;
  at: string;
  ranks: number;
}

type Bucket =
  | "starting"
  | "joining"
  | "stalled"
  | "repeated"
  | "leaving"
  | "useless"
  | "kept"
  | "unknown";

type GoodputReport = {
  unit: string;
  allocated: number;
  rates: Record<string, number>;
} & Record<Bucket, number>;

// What looks into the workers have found.
interface TrainingReport {
  progress: ProgressReport | null;
  goodput: GoodputReport | null;
}

// What tells a job from another of its name, and from itself before a write.
interface JobIdentity {
  uid: string;
  resourceVersion: string;
}

// A row of the page of all jobs: what the server sends, and its element.
interface JobRow {
  report: JobReport;
  says: Finding[];
  name: string;
  group: number;
  node: HTMLElement | undefined;
  changed: boolean;
}

// Sizes from a time on: without `ready` the page has not seen them, without `desired` nobody knows them.
interface SizesPart {
  from: number;
  desired?: number | null;
  ready?: number;
  published?: number;
}

// GPU-seconds at a time. apart: the page has not seen the time before it.
interface SpentPart {
  from: number;
  allocated: number;
  kept: number;
  apart: boolean;
}

// What a worker did from a time on. guessed: it is unknown whether it was listed then.
interface LanePart {
  from: number;
  kind: string;
  node?: string;
  host?: string;
  guessed?: boolean;
}

// The same until a time.
interface LaneSpan extends LanePart {
  to: number;
}

interface SizesSpan extends SizesPart {
  to: number;
}

interface SizeMark {
  at: number;
  words: string;
}

// The time that is shown, in milliseconds since the epoch. wide: its pixels.
interface TimeAxis {
  start: number;
  now: number;
  minutes: number;
  wide: number;
  x: (time: number) => number;
}

// Workers in one state on one node. key: of both.
interface WorkersFold {
  key: string;
  names: string[];
  of: string;
  node: string;
}

// A change of the size. setsSize: false if it is a loss, which leaves the size that is asked for.
interface SizeChange {
  when: string;
  from: number;
  to: number;
  setsSize: boolean;
}

// A change of the size that the history knows.
interface HistoryChange extends SizeChange {
  cause: string;
  by: string;
  listedAfter: number | null;
  trainedAfter: number | null;
  secondsLost: number | null;
  stepsRepeated: number | null;
  ranksCut: number;
  note: string;
}

// The last lines of a launcher, and those of its container before a restart; all is empty while there is no launcher.
interface LogReport {
  pod: string;
  uid: string;
  lines: string[];
  before: string[];
  error?: string;
}

// Where a stream stands: live, or in words why not, and when it is opened again (milliseconds since the epoch).
interface StreamState {
  live?: boolean;
  words?: string;
  again?: number;
  since?: number;
  refused?: string | false;
}
