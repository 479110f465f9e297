import { Component, type ComponentType, type FunctionComponent, h } from "preact";

/** The component, drawn again only when one of its properties is another one. */
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
