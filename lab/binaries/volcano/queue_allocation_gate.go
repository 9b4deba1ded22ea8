package v1beta1

// QueueAllocationGateKey is the annotation and the scheduling gate of pods that wait for their
// queue, as docs/design/scheduling-gates-queue-admission.md of Volcano v1.15.1 has it.
const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
