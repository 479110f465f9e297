// round rounds an amount to its currency's smallest coin.
export function round(amount, currency) {
  const digits = ['JPY', 'KRW'].includes(currency) ? 0 : 2;
  return Number(amount.toFixed(digits));
}
