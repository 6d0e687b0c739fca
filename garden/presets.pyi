from presets import *
