// Package picture draws how soon an end is known against the jobs of a day.
package picture

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Curve is one line of the picture.
type Curve struct {
	Name   string
	Jobs   []int     // a day
	Delays []float64 // seconds
	Ours   bool
	Dashed bool
}

var (
	blue = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	grey = color.RGBA{R: 0x88, G: 0x88, B: 0x88, A: 0xff}
)

// marks of the axes, both of them logarithmic.
var (
	jobMarks   = []float64{50, 150, 500, 1500, 5000}
	delayMarks = map[float64]string{
		5: "5 s", 15: "15 s", 60: "1 min", 300: "5 min", 1800: "30 min", 7200: "2 h", 36_000: "10 h", 86_400: "1 day",
	}
)

// Draw writes the picture to a file, in the format of its ending.
func Draw(path string, curves []Curve) error {
	p := plot.New()
	p.Title.Text = "From finished at Sume to known here (renders of 1, 3, 8 and 20 min, 10,000 reads a day)"
	p.Title.TextStyle.Font.Size, p.Title.Padding = 11, 8
	p.BackgroundColor = color.White // legible on a dark page too
	p.X.Label.Text, p.Y.Label.Text = "jobs a day", "delay"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(jobTicks()), plot.ConstantTicks(delayTicks())
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{Y: 0xe0}, color.Gray{Y: 0xe0}
	p.Add(grid)
	for _, c := range curves {
		line, points, err := plotter.NewLinePoints(c.points())
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
		line.Width, line.Color = 2, grey
		if c.Ours {
			line.Color = blue
		}
		points.Color, points.Radius = line.Color, 2
		if c.Dashed {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(line, points)
		p.Legend.Add(c.Name, line)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = 2, 8, -8
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 45, 5600, 4, 1_500_000
	return p.Save(18*vg.Centimeter, 10*vg.Centimeter, path)
}

func (c Curve) points() plotter.XYs {
	xys := make(plotter.XYs, len(c.Jobs))
	for i := range xys {
		xys[i].X, xys[i].Y = float64(c.Jobs[i]), max(c.Delays[i], 1)
	}
	return xys
}

func jobTicks() (ticks []plot.Tick) {
	for _, v := range jobMarks {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.0f", v)})
	}
	return ticks
}

func delayTicks() (ticks []plot.Tick) {
	for v, label := range delayMarks {
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}
