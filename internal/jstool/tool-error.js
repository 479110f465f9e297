export class ToolError extends Error {
  constructor(type, message, options = {}) {
    super(message);
    this.name = 'ToolError';
    this.type = type;
    this.retryable = options.retryable ?? (type === 'TRANSIENT' || type === 'RATE_LIMIT');
    this.partialSideEffects = options.partialSideEffects ?? false;
    this.details = options.details;
    this.suggestion = options.suggestion;
  }
}
