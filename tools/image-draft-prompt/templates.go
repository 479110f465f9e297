package imagedraftprompt

import "slices"

// style is a way of making an image.
type style struct {
	name ArgsStyle
	// The prompt is opening, the idea, and finish.
	opening, finish string
	// lights has an entry for each possible variant: variants of one style differ in light and composition.
	lights [5]string
}

// styles are sorted for requests without a style: the most different ones first.
var styles = []style{
	{ArgsStylePhoto, "A photograph of", "Natural colours, fine detail, shallow depth of field",
		[5]string{"soft daylight from a window", "low golden sun from the side", "overcast sky without shadows",
			"blue hour with warm lamps", "hard noon sun with deep shadows"}},
	{ArgsStyleIllustration, "An editorial illustration of", "Flat shapes, few colours, clear outlines",
		[5]string{"even light, shadows as flat shapes", "one warm light from the left", "a dark scene with one bright spot",
			"morning light in pale colours", "strong backlight with a bright rim"}},
	{ArgsStyleWatercolor, "A watercolour painting of", "Visible paper grain, soft edges, colours that run into each other",
		[5]string{"diffuse light after rain", "a pale winter sun", "evening light in ochre and rose",
			"bright light with white paper left free", "misty light that fades into the distance"}},
	{ArgsStyleLineArt, "A line drawing of", "Black ink on white paper, varied line width, no grey",
		[5]string{"no shading, lines alone", "shadows in fine hatching from the right", "solid black shadows",
			"dots that thicken into shade", "a single source, crossed hatching"}},
	{ArgsStylePoster, "A poster that shows", "Bold shapes, three colours, room for a title, no lettering",
		[5]string{"high contrast without midtones", "a glow behind the subject", "long graphic shadows",
			"a spotlight from above", "a sunset in flat bands"}},
	{ArgsStyleOilPainting, "An oil painting of", "Visible brush strokes, rich colours, a dark ground",
		[5]string{"candlelight from one side", "stormy light that breaks through clouds", "warm evening light",
			"cool light from the north", "bright light with coloured shadows"}},
	{ArgsStyleRender3d, "A 3D render of", "Soft materials, clean surfaces, a plain background",
		[5]string{"a large soft studio light", "two lights, one warm and one cool", "a rim light on a dark background",
			"bright light from all sides", "neon from below"}},
	{ArgsStylePixelArt, "Pixel art of", "A small palette, crisp pixels, no blur",
		[5]string{"a flat bright day", "night with lit windows", "a sunset in four colours", "torchlight in a dark room",
			"moonlight on water"}},
}

// styleOf returns a style of the schema, which allows no other name.
func styleOf(name ArgsStyle) style {
	return styles[slices.IndexFunc(styles, func(s style) bool { return s.name == name })]
}

// composition is an arrangement and the size of image_generate that suits it.
type composition struct {
	words string
	size  OutputVariantsItemSize
}

var compositions = []composition{
	{"the subject in the centre, calm space around it", OutputVariantsItemSize1024x1024},
	{"a wide view, the subject small in its surroundings", OutputVariantsItemSize1536x1024},
	{"a close view that fills the frame, from the front", OutputVariantsItemSize1024x1024},
	{"seen from below, the subject tall against the sky", OutputVariantsItemSize1024x1536},
	{"the subject off the centre by a third, leading lines towards it", OutputVariantsItemSize1536x1024},
}
