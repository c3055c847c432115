export class Cancelled extends Error {}
export class ToolError extends Error {}

export interface Turn {
  readonly input: string;
  readonly messages: object[];
  readonly tools: { name: string; description: string; parameters: object }[];
  readonly instructions: string;
  /** What the caller sent along; {} where there is none. */
  readonly config: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
  /** The caller's W3C trace context, where it has one. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly agent: string;
  readonly model: string;
  readonly session: string;
  readonly user: string;
  readonly workspace: string;
  readonly signal: AbortSignal;
  say(text: string): void;
  think(text: string): void;
  step(text: string): void;
  usage(tokens: { input?: number; output?: number; model?: string }): void;
  call(tool: string, args?: object): Promise<any>;
  callAll(calls: [tool: string, args?: object][]): Promise<any[]>;
  ask(question: string): Promise<any>;
  /** For code that goes on from `messages`: what is on record there is not called again. */
  resume(): void;
}

export function run(answer: (turn: Turn) => Promise<string | void> | string | void): void;
