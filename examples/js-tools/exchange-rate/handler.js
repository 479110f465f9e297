import { ToolError, ErrorType } from '../_core/error-types.js';
import { round } from '../_lib/money.js';

export async function execute({ args, settings }) {
  const url = new URL('/latest', settings.base_url);
  url.searchParams.set('from', args.from);
  url.searchParams.set('to', args.to);
  let answer;
  try {
    answer = await fetch(url);
  } catch (error) {
    throw new ToolError(ErrorType.TRANSIENT, 'The rates cannot be reached.', { retryable: true });
  }
  if (answer.status === 404) {
    return { ok: false, error: { type: ErrorType.NOT_FOUND, message: `There is no rate from ${args.from} to ${args.to}.` } };
  }
  if (!answer.ok) {
    throw new ToolError(ErrorType.TRANSIENT, `The rates answered with status ${answer.status}.`, { retryable: true });
  }
  const { rate, date } = await answer.json();
  return { ok: true, data: { amount: round(args.amount * rate, args.to), rate, date } };
}
