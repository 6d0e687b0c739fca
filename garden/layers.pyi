from layers import *
