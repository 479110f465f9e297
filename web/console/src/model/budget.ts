// The account of a turn, as the gateway tells it.

/** What a turn has used of what it may. */
export interface Budget {
  retrieval: Account;
  total: Account;
  /** Absent where the time of tools is not limited. */
  tool_time_ms?: Account;
}

export interface Account {
  used: number;
  limit: number;
}

/** A budget as inspect tells it; undefined for an invalid one. */
export function budgetOf(value: unknown): Budget | undefined {
  const budget = value as Partial<Budget> | undefined | null;
  return isAccount(budget?.retrieval) && isAccount(budget?.total) ? (budget as Budget) : undefined;
}

function isAccount(account: Account | undefined): boolean {
  return typeof account?.used === "number" && typeof account.limit === "number";
}
