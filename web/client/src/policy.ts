/**
 * Calls back when the page's content security policy blocks a request to the address. Call the returned
 * function to stop. Browsers report a blocked WebSocket by its address, its origin or only its scheme
 * (https://www.w3.org/TR/CSP3/#strip-url-for-use-in-reports).
 */
export function onBlocked(address: string, call: () => void): () => void {
  const heard = ({ disposition, blockedURI }: SecurityPolicyViolationEvent): void => {
    if (disposition === "enforce" && blockedURI !== "" && address.startsWith(blockedURI)) {
      call();
    }
  };
  document.addEventListener("securitypolicyviolation", heard);
  return () => document.removeEventListener("securitypolicyviolation", heard);
}
