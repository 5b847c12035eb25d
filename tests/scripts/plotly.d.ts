// What the scripts use of Plotly, which the page loads by itself.

interface PlotlyFigure {
  data: Record<string, any>[];
  layout: Record<string, any>;
}

interface PlotlyElement extends HTMLElement, PlotlyFigure {
  on(event: "plotly_relayout", told: (change: Record<string, number | string>) => void): void;
  on(event: "plotly_selected", told: (selected?: { range?: { x: number[] } }) => void): void;
  on(event: "plotly_doubleclick", told: () => void): void;
}

declare const Plotly: {
  react(plot: HTMLElement, traces: object[], layout: object, config: object): Promise<PlotlyElement>;
  downloadImage(plot: PlotlyFigure, options: object): Promise<string>;
};
