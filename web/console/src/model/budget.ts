// A turn's budget, as reported by the gateway.

/** The used part of a turn's budget. */
export interface Budget {
  retrieval: Account;
  total: Account;
  /** Absent without a limit on tool time. */
  tool_time_ms?: Account;
}

export interface Account {
  used: number;
  limit: number;
}

/** Parses a budget from inspect; undefined for an invalid one. */
export function budgetOf(value: unknown): Budget | undefined {
  const budget = value as Partial<Budget> | undefined | null;
  return isAccount(budget?.retrieval) && isAccount(budget?.total) ? (budget as Budget) : undefined;
}

function isAccount(account: Account | undefined): boolean {
  return typeof account?.used === "number" && typeof account.limit === "number";
}
