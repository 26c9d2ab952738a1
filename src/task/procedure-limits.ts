/** What a procedure may grow to; shown with every other limit in docs/limits.md. */
export const PROCEDURE_LIMITS = {
  /** Steps, sleeps and children of one pass through its code, until it restarts. */
  itemsMax: 2_000,
  /** Results, arguments and plans that cross continue-as-new, as JSON in UTF-8. */
  carriedBytesMax: 1_048_576,
  /** Requests of the activities that one workflow task schedules, as JSON in UTF-8. */
  bytesAtOnceMax: 1_572_864,
  /** What its code hands over in one piece: a step's arguments, an approval's view, its result. As JSON in UTF-8. */
  handedBytesMax: 1_048_576,
  /** A stepId. */
  stepIdLengthMax: 64,
  /** A step's whole name: its stepId behind those of the children it is in. */
  stepNameLengthMax: 150,
} as const;
