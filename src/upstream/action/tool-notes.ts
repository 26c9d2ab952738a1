/** What is wrong, or worth knowing, about one configured tool: for quarantine, logs and `holdfast upstream check`. */
export interface ToolNote {
  /** In the configuration of the tool, in dotted form: `verify.verified`. */
  field: string;
  message: string;
  /** Offset in a CEL expression, from 0. */
  at?: number;
}

export class ToolNotes {
  /** The tool can not be offered as configured. */
  readonly defects: ToolNote[] = [];
  /** It can, with less than might be promised. */
  readonly warnings: ToolNote[] = [];

  refuse(field: string, message: string, at?: number): void {
    this.defects.push({ field, message, ...(at !== undefined && { at }) });
  }

  warn(field: string, message: string): void {
    this.warnings.push({ field, message });
  }
}

export const noteText = ({ field, message, at }: ToolNote): string =>
  `${field}${at === undefined ? '' : ` (at ${at})`}: ${message}`;
