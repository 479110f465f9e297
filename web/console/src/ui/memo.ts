import { Component, type ComponentType, type FunctionComponent, h } from "preact";

/** Renders the component again only when a property changes. */
export function memo<P extends object>(Inner: FunctionComponent<P>): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return (Object.keys(next) as (keyof P)[]).some((name) => next[name] !== this.props[name]);
    }

    override render(): ReturnType<FunctionComponent<P>> {
      return h(Inner, this.props);
    }
  };
}
